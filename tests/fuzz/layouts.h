/*
 * The shipped layouts. Every fuzzed image chooses one.
 */
#ifndef RBDUMP_FUZZ_LAYOUTS_H
#define RBDUMP_FUZZ_LAYOUTS_H

#include <stddef.h>

#include "layout/layout.h"

/*
 * The number of layouts, and one of them, in the order of their names. The first call reads offsets.d/ of the current
 * folder, which must be the top of the sources, and ends the program if there is no layout or if a file is refused. Takes
 * one layout of each kind since 2.6: layouts that differ only in their offsets are of the same kind.
 */
size_t layouts_count(void);
const struct layout *layouts_get(size_t index);

/* The text of a layout's file, without the line of its digest, so that the digest does not reveal changes to the text. */
const char *layouts_text(size_t index);

#endif
