/*
 * Writes to the file that the user has named, or to standard output.
 */
#ifndef RBDUMP_HEAP_OUTPUT_H
#define RBDUMP_HEAP_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/*
 * Opens the output, calls `write`, and closes the output, unless it is standard output.
 *   path   NULL: standard output. A file is compressed if its name ends in .gz or .zst (packed_file.h)
 *   write  writes to the stream. Returns false if there is not enough memory. heap_output() checks the stream for errors
 */
struct error *heap_output(const char *path, bool (*write)(void *context, FILE *stream), void *context);

#endif
