/*
 * The shipped layouts: every fuzzed image chooses one.
 */
#ifndef RBDUMP_FUZZ_LAYOUTS_H
#define RBDUMP_FUZZ_LAYOUTS_H

#include <stddef.h>

#include "layout.h"

/*
 * Reads offsets.d/ of the current folder, which must be the top of the sources, once; ends the program if there is
 * nothing, or a file is refused. One of each kind since 2.6: not those that differ only in where things are. In the
 * order of their names.
 */
size_t layouts_count(void);
const struct layout *layouts_get(size_t index);

/* The file that it was read from, without the line of its digest, so that changes to it are not found out by that. */
const char *layouts_text(size_t index);

#endif
