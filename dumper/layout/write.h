/*
 * Writes layout files.
 */
#ifndef RBDUMP_LAYOUT_WRITE_H
#define RBDUMP_LAYOUT_WRITE_H

#include <stdio.h>

#include "layout/layout.h"

/*
 * Writes a layout file, and flushes the stream. The same layout always produces the same bytes. Symbols and windows are
 * valid for one build only, so they are omitted if the layout has no build-id. `arch`, `source` and `version` must be
 * set. The values of the header and the function names in the windows must be printable ASCII.
 *
 * On failure, returns false and sets errno. If a write fails, errno is the error of that write. If there is not enough
 * memory, errno is ENOMEM, and nothing was written.
 */
bool layout_write(const struct layout *layout, FILE *file);

#endif
