/*
 * Finds the layout for a Ruby: the file that the user gave, or the best layout in the folders (folders.h).
 */
#ifndef RBDUMP_FIND_H
#define RBDUMP_FIND_H

#include "base/error.h"
#include "store/found.h"

/*
 * Reads the layout file that the user gave. Fails with EXIT_NO_RUBY if the file cannot be read, if it is not a layout
 * file, or if the layout is for another architecture or for other patch levels. The error names the file.
 */
struct error *layout_find_given(const char *file, const struct layout_wish *wish, struct layout_found *ret);

/*
 * Finds the best layout for the wanted Ruby (found.h) in all folders. The order, from best to worst, is:
 * - a layout for exactly the wanted build;
 * - a layout that is for whole releases (not for one build), and that was made from the wanted version;
 * - a layout that is for whole releases, and whose range of releases includes the wanted version.
 * Layouts for other architectures are ignored. If the wanted release is newer than all releases in the range of a
 * layout, this layout is also ignored, because a newer release can differ from the older releases of its series.
 *
 * Among equally good layouts, layouts for Ruby's default configuration come first. If layouts are still equally good,
 * the order of their folders (folders.h) decides. In each folder, the file with the name from layout_file_name_of()
 * comes first. All other files follow, sorted by name. Files that cannot be read are skipped.
 *   skip  how many of the best layouts to skip; the caller has already tried these layouts, and they did not fit
 * Returns false if no layout is found, or if all layouts that were found are skipped.
 */
bool layout_find_kept(const struct layout_wish *wish, unsigned int skip, struct layout_found *ret);

#endif
