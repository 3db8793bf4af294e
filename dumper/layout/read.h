/*
 * Reading layout files.
 */
#ifndef RBDUMP_LAYOUT_READ_H
#define RBDUMP_LAYOUT_READ_H

#include <stdio.h>

#include "layout.h"

/*
 * Reads a layout file.
 *   file   read to its end, at most 1 MiB; not closed
 *   ret    the layout, to be destroyed by the caller
 * Returns NULL and sets *ret, or returns a malloc'ed sentence (without the file's name) that says what is wrong with
 * it, and where. The content may be hostile: lines must be printable ASCII, in order and not repeated, numbers are
 * range-checked (sizes from 1 to below 64 KiB, offset + size within the struct's size, shift + width within size,
 * low < high), and what fields.def requires must be there (check.h).
 */
char *layout_read(FILE *file, struct layout **ret);

/* Reads only the header, for choosing among many files; facts stay absent. Otherwise as layout_read(), but the rest of
 * the file is not looked at. */
char *layout_read_header(FILE *file, struct layout **ret);

#endif
