/*
 * A file for output. If its name ends in .gz (gzip) or .zst (zstd), the file is compressed while it is written.
 */
#ifndef RBDUMP_PACKED_FILE_H
#define RBDUMP_PACKED_FILE_H

#include <stdio.h>

#include "base/error.h"

/*
 * Opens a file for writing, and truncates it. The caller closes the stream with fclose(), which writes the end of the
 * compressed data, and returns EOF if something could not be written.
 */
struct error *packed_file_open(const char *path, FILE **ret);

#endif
