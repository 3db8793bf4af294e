/*
 * Reads layout files.
 */
#ifndef RBDUMP_LAYOUT_READ_H
#define RBDUMP_LAYOUT_READ_H

#include <stdio.h>

#include "base/error.h"
#include "layout/layout.h"

/*
 * Reads a layout file.
 *   file   the open file, which is read to its end (at most 1 MiB), but not closed
 *   ret    receives the layout, which the caller must destroy
 *
 * On failure, returns an error with the exit status EXIT_FAILED. The error message contains only printable ASCII. The
 * error message says what is wrong and where, but does not name the file.
 *
 * The file may be malicious, so its content is checked. Lines must contain only printable ASCII, must be in the order
 * that doc/layout-format.md describes, and must not be repeated. Numbers must be in range. The size of a struct must be
 * at least 1 byte, and less than 64 KiB. A member must lie within its struct, and a bitfield must lie within its
 * member. In a window, `low` must be less than `high`. The file must have all facts that fields.def requires (check.h).
 */
struct error *layout_read(FILE *file, struct layout **ret);

/*
 * Reads only the header of a layout file, so that a caller can choose among many files. *ret then contains only the
 * header: all facts are absent. The parameters and the errors are the same as for layout_read().
 */
struct error *layout_read_header(FILE *file, struct layout **ret);

#endif
