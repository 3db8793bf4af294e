/*
 * What rbdump has found out of one file, and keeps in the user's cache for the next time: a layout that it has made of
 * its debug info, and where its roots are. It is kept under the file's build-id and the digest of all of it, and used
 * for a file with the same digest only: CACHE/rbdump/by-digest/BUILD-ID/DIGEST.layout and DIGEST.roots. Which folder is
 * trusted is decided by trust/trust.h.
 */
#ifndef RBDUMP_MADE_H
#define RBDUMP_MADE_H

#include "trust/trust.h"

/* The user's cache: $XDG_CACHE_HOME/rbdump/NAME, else ~/.cache/rbdump/NAME; malloc'ed. NULL if there is no home. */
char *made_cache_folder(const char *name);

/* Whether anything is kept of a build, so that the digest of its file is worth to be known. */
bool made_has(const char *build_id);

/*
 * Opens what is kept of a file, for reading.
 *   kind  "layout", "roots"
 *   path  receives its path, malloc'ed; may be NULL
 * Returns -1 if there is none that is trusted.
 */
int made_open(const char *build_id, const char *digest, const char *kind, char **path);

/* Keeps something of a file. Returns its path, malloc'ed; NULL if there is no cache that is trusted. */
char *made_keep(const char *build_id, const char *digest, const char *kind, trust_writer *write, const void *content);

#endif
