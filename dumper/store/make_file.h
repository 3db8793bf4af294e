/*
 * Makes a layout file at the user's request.
 */
#ifndef RBDUMP_MAKE_FILE_H
#define RBDUMP_MAKE_FILE_H

#include <stdbool.h>

/*
 * Makes the layout of a Ruby and writes it to a file. Returns the exit status.
 *   elf        an executable, a shared library, a debug file or an object file (gen/gen.h says how each kind of file is
 *              read)
 *   output     the file to write; "-": stdout; NULL: a file in the default folder. If the layout has a build-id, the
 *              name of this file is VERSION-ARCH-BUILDID.layout, where BUILDID is the first 12 digits of the build-id.
 *              Otherwise, for example if `any_build` is true, the name is VERSION-ARCH.layout
 *   any_build  make a layout for all builds of this version, without a build-id, symbols or torn windows
 *
 * The default folder is a folder in which `rbdump dump` will find the layout. If the first entry of $RBDUMP_OFFSETS_D
 * is not empty, this entry is the default folder. Otherwise, if ./offsets.d is the folder of rbdump itself (see
 * store/folders.h), the default folder is ./offsets.d. In all other cases, the default folder is the user's cache. The
 * default folder is created if it does not exist.
 *
 * The layout is first written to a temporary file in the folder of the layout file. The temporary file is then renamed,
 * so the layout file is never incomplete. If `output` is "-", a pipe or a device, the layout is written directly to
 * `output`, without a temporary file. On success, prints one line to stderr: `FILE: N fields, M absent (optional)`. On
 * failure, prints one error message, and does not leave a new file.
 */
int layout_make_file(const char *elf, const char *output, bool any_build);

#endif
