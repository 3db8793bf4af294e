/*
 * Writes a layout to a file that the user has named. No reader sees an incomplete file under that name.
 */
#ifndef RBDUMP_STORE_H
#define RBDUMP_STORE_H

#include "layout/layout.h"

/*
 * Writes a temporary file in the folder of `path`, and renames that file to `path`. On failure, returns false, sets
 * errno, and leaves an existing file at `path` unchanged.
 */
bool store_layout(const struct layout *layout, const char *path);

#endif
