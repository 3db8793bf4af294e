/*
 * Lists all layouts in the folders (folders.h). Also reads layouts, in the order in which the caller should try them.
 */
#ifndef RBDUMP_LISTS_H
#define RBDUMP_LISTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "store/found.h"

/*
 * A function that is called for each layout file. `header` is the header of the file. If the header cannot be read,
 * `header` is NULL, and the error `wrong` says why. All arguments are valid only during the call.
 */
typedef void layout_lister(void *context, const char *path, const struct layout *header, const struct error *wrong);

/*
 * Calls `list` for the layout files of all folders, in the order of the folders. Within each folder, the files are
 * sorted by version.
 */
void layout_lists_show(layout_lister *list, void *context);

/* Layouts, in the order in which the caller should try them. */
struct layout_list {
	struct layout_found *of;
	size_t count;
};

/* Frees the contents of a list. `list` may point to a zeroed struct. */
void layout_list_clear(struct layout_list *list);

/*
 * Reads the layouts for whole releases from all folders. Omits layouts that are for only one build. Layouts for newer
 * releases come first. If the newest release is the same for several layouts, layouts for Ruby's default configuration
 * come first. If several layouts have the same version and the same facts (doc/layout-format.md), the list contains
 * only one of these layouts: the layout that folders_visit() finds first. The list is empty if there is no layout for
 * whole releases, or if there is not enough memory.
 */
void layout_lists_releases(const char *arch, struct layout_list *ret);

/*
 * Reads the layouts that are nearest to the wanted version (store/nearest.h). The nearest layout comes first. Sets the
 * `source` of each layout to LAYOUT_NEAREST.
 */
void layout_lists_nearest(const struct layout_wish *wish, struct layout_list *ret);

/*
 * Among the releases in the series of the wanted version, finds the newest release that has a layout. Writes the
 * release to `version`, as text. Returns false if no release in the series has a layout. The layout of the found
 * release might not fit the wanted version.
 */
bool layout_lists_newest(const struct layout_wish *wish, char *version, size_t size);

#endif
