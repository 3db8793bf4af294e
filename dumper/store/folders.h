/*
 * The folders in which rbdump looks for layouts, in this order:
 * - $RBDUMP_OFFSETS_D (colon-separated);
 * - the folder with the layout that rbdump itself has made from Ruby's ELF file (store/made.h);
 * - the user's cache, with the layouts that the user has made with `rbdump layout`: $XDG_CACHE_HOME/rbdump/offsets.d,
 *   else ~/.cache/rbdump/offsets.d;
 * - the folder of rbdump itself: PREFIX/share/rbdump/offsets.d if the program is PREFIX/bin/rbdump, or offsets.d of a
 *   source tree if the program is build/rbdump or build/san/rbdump in that tree.
 * A folder or file that is not trusted (trust/trust.h) is skipped.
 */
#ifndef RBDUMP_FOLDERS_H
#define RBDUMP_FOLDERS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "store/found.h"

/* A layout file in a folder. */
struct place {
	int fd;			 /* the open file; -1 if the file cannot be opened or is not trusted */
	const char *path;	 /* for messages */
	const struct error *why; /* the reason why the file was not opened; NULL if the file is open */
};

/* Opens a stream that reads a layout file. Returns NULL on failure. The caller closes the stream. */
FILE *folders_stream(const struct place *place);

/*
 * A function that is called for each layout file. The function returns true to stop the search. `place` is valid only
 * during the call.
 */
typedef bool folders_visitor(void *context, const struct place *place);

/*
 * Calls `visit` for the layout files of all folders, until `visit` returns true. Within each folder, the files are
 * sorted by the versions in their names (versionsort(3)).
 *   made  the wanted Ruby (store/found.h), or NULL. If `made` is not NULL, `visit` is also called for the layout that
 *         rbdump itself has made from the ELF file of the wanted Ruby. This call comes just before the calls for the
 *         layouts in the user's cache
 * Returns whether `visit` returned true.
 */
bool folders_visit(const struct layout_wish *made, folders_visitor *visit, void *context);

/*
 * Checks whether these folders are trusted: the folders that $RBDUMP_OFFSETS_D lists, the user's cache, and the folder
 * of rbdump itself. Returns an error that names the first folder that is not trusted, or NULL if every folder that
 * exists is trusted.
 */
struct error *folders_untrusted(void);

/*
 * Returns the path of the user's cache folder for layouts, malloc'ed. On failure, returns NULL and sets errno: ENOENT
 * if neither $XDG_CACHE_HOME nor $HOME is an absolute path, ENOMEM if there is not enough memory.
 */
char *layout_cache_folder(void);

/*
 * Returns the path of the folder of rbdump itself, malloc'ed. If the program is PREFIX/bin/rbdump, the folder is
 * PREFIX/share/rbdump/offsets.d. If the program is build/rbdump or build/san/rbdump in a source tree of rbdump, the
 * folder is offsets.d of that tree. Returns NULL if PREFIX/share/rbdump/offsets.d cannot be read, if the program has
 * none of these paths, or if there is not enough memory.
 */
char *layout_program_folder(void);

/*
 * Returns the file name of a layout, malloc'ed: VERSION-ARCH.layout. If the layout has a build-id, the name is
 * VERSION-ARCH-BUILDID12.layout, with the first 12 digits of the build-id. Returns NULL if there is not enough memory.
 */
char *layout_file_name(const struct layout *layout);

/*
 * Makes the same name as layout_file_name(), but from the version, the architecture and the build-id. `build_id` is
 * NULL if the layout has no build-id.
 */
char *layout_file_name_of(const char *version, const char *arch, const char *build_id);

#endif
