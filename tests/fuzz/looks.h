/*
 * A part of the fuzz target: two traces of one image, as if they were two looks at a process, are compared, merged and
 * rendered. A failure is reported, and ends the program by abort(3).
 */
#ifndef RBDUMP_FUZZ_LOOKS_H
#define RBDUMP_FUZZ_LOOKS_H

#include "trace/trace.h"

/* Both have one thread, and have been read from the same bytes. Takes both traces. */
void looks_check(struct trace *first, struct trace *second);

#endif
