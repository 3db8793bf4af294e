/*
 * Makes a layout from the debug info of a Ruby, and stores the layout for later use.
 */
#ifndef RBDUMP_GENERATE_H
#define RBDUMP_GENERATE_H

#include "base/error.h"
#include "store/found.h"

/*
 * Makes a layout from the debug info of an ELF file. The layout can be kept (layout_generate_keep()) only if the ELF
 * file has a build-id. In addition, the debug info must be in the ELF file itself, or in a separate debug file that
 * only root or the effective user can have installed.
 *   fd    the open ELF file; layout_generate() does not close it
 *   path  the path of the ELF file, for messages and to find its debug files
 *   root  the root folder that `path` is relative to: "/proc/PID/root", or "" for the root folder of this system
 * Fails if the ELF file cannot be read, if no layout can be made from the file (see gen/gen.h), or if the debug info is
 * not for the wanted version of Ruby.
 */
struct error *layout_generate(const struct layout_wish *wish, int fd, const char *path, const char *root,
			      struct layout_found *ret);

/*
 * Keeps a generated layout in the user's cache, if the layout can be kept (see layout_generate()) and the cache is
 * trusted. Call this function only after the layout has passed the self-test.
 */
void layout_generate_keep(struct layout_found *found);

#endif
