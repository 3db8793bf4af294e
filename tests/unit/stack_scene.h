/*
 * An execution context with a VM stack in this process, and a thread that points to it: what stack copies are taken of in
 * the tests of sampling/.
 */
#ifndef RBDUMP_TESTS_STACK_SCENE_H
#define RBDUMP_TESTS_STACK_SCENE_H

#include <stdint.h>

#include "layout/layout.h"
#include "sampling/stack_copy.h"

#define CONTEXT_BYTES 4096u
#define STACK_BYTES   65536u

/* An execution context, and its stack behind it, with that many frames: they come and go together, as those of a fiber. */
uint8_t *new_context(const struct layout *layout, unsigned int frames);
void free_context(uint8_t *context);

/* Lets a thread, of at least CONTEXT_BYTES, run in an execution context. */
void enter_context(const struct layout *layout, uint8_t *thread, const uint8_t *context);

/* The frame that is `older` frames from the innermost one of that many frames. */
uint8_t *frame_of(const struct layout *layout, uint8_t *context, unsigned int frames, unsigned int older);

/* Copies until the extent is right; how often it was not. */
int copy_stack(struct stack_copy *copy, struct stack_extent *extent, enum copy_way way, enum copy_result expected);

#endif
