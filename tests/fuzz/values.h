/*
 * Reads the local variables and self of each frame of an image, and writes them as text. A failure ends the program by
 * abort(3).
 */
#ifndef RBDUMP_FUZZ_VALUES_H
#define RBDUMP_FUZZ_VALUES_H

#include "ruby/frame.h"

/* A time limit (memory_limit()) ends it: an image can lead to more reads than there is time for. */
void values_run(const struct ruby *ruby, const struct stack *stack);

#endif
