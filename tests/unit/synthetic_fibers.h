/*
 * Fibers of a synthetic Ruby (synthetic.h): a scene with threads that run a fiber each, to which tests add fibers.
 */
#ifndef RBDUMP_SYNTHETIC_FIBERS_H
#define RBDUMP_SYNTHETIC_FIBERS_H

#include "ruby/fibers.h"
#include "synthetic.h"

/* Some threads with a fiber each, which they run, and a pool of stacks. */
struct scene {
	struct synthetic *s;
	struct ruby_thread of[2];
	struct ruby_threads threads;
	uint64_t pool;
	uint64_t newest; /* link */
	struct heap_finds found;
};

extern struct scene scene;

/* For cmocka: makes the scene. Ends with synthetic_tear_down(). */
int set_up_fibers(void **state);

/* A fiber of a thread, with a stack, linked as the newest. `pooled` tells whether the stack is the pool's. */
uint64_t new_fiber(uint64_t thread, enum layout_enumerator_id status, bool pooled);
/* Sets how many stacks of the pool are in use. */
void set_used(uint64_t used);

/* The fibers that rbdump lists. The caller frees them with fibers_clear(). */
struct ruby_fibers list_fibers(void);
/* The fibers are these, in this order; `missing` tells why there may be more. */
void assert_fibers(const uint64_t *expected, size_t count, enum list_missing missing);

#endif
