/*
 * Writing layout files.
 */
#ifndef RBDUMP_LAYOUT_WRITE_H
#define RBDUMP_LAYOUT_WRITE_H

#include <stdio.h>

#include "layout.h"

/*
 * Writes a layout file; the same layout gives the same bytes.
 * What holds for one build only, symbols and windows, is left out if the layout has no build-id. arch, source and
 * version must be set, header values and window functions printable ASCII.
 * Flushes the stream. Returns false if it is in error after that (errno is that of the write).
 */
bool layout_write(const struct layout *layout, FILE *file);

#endif
