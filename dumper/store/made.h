/*
 * Keeps files in the user's cache. For each build of Ruby (for each build-id), the cache contains a list of the ELF files
 * that have this build-id (known_files.h). For each ELF file in the list, the cache contains up to two more files. One of
 * them contains a layout that was made from the debug info of the ELF file. The other one contains the addresses of Ruby's
 * roots. The paths of both files contain the build-id and the digest of the whole ELF file:
 * CACHE/rbdump/by-digest/BUILD-ID/DIGEST.layout and CACHE/rbdump/by-digest/BUILD-ID/DIGEST.roots. A kept file is used
 * only if the digest in its path is the digest of the ELF file. The header trust/trust.h says which folders are
 * trusted.
 */
#ifndef RBDUMP_MADE_H
#define RBDUMP_MADE_H

#include "trust/trust.h"

/*
 * Returns the path of the folder `name` in the user's cache, malloc'ed: $XDG_CACHE_HOME/rbdump/NAME, else
 * ~/.cache/rbdump/NAME. On failure, returns NULL and sets errno: ENOENT if neither $XDG_CACHE_HOME nor $HOME is an
 * absolute path, ENOMEM if there is not enough memory.
 */
char *made_cache_folder(const char *name);

/*
 * Returns whether the cache has a trusted folder for a build-id. If there is no such folder, rbdump cannot use anything
 * from the cache for this build, so the caller need not compute the digest of the ELF file.
 */
bool made_has(const char *build_id);

/*
 * Opens a file in the folder of a build, for reading. Returns a descriptor; -1 if there is no trusted file of this name, or
 * if there is not enough memory.
 */
int made_open_file(const char *build_id, const char *name);

/*
 * Makes or replaces a file in the folder of a build. The function `write` writes `content` to the file. Returns false if
 * there is no trusted cache, if the file cannot be written, or if there is not enough memory.
 */
bool made_keep_file(const char *build_id, const char *name, trust_writer *write, const void *content);

/*
 * Opens one of the two files that are kept for an ELF file. The file is opened for reading.
 *   kind  "layout" or "roots"
 *   path  receives the path of the opened file, malloc'ed; may be NULL
 * Returns a descriptor; -1 if there is no trusted file, or if there is not enough memory.
 */
int made_open(const char *build_id, const char *digest, const char *kind, char **path);

/*
 * Makes one of the two files that are kept for an ELF file. The function `write` writes `content` to the new file.
 * Returns the path of the new file, malloc'ed. Returns NULL if there is no trusted cache, if the file cannot be
 * written, or if there is not enough memory.
 */
char *made_keep(const char *build_id, const char *digest, const char *kind, trust_writer *write, const void *content);

#endif
