/*
 * Declares what the .c files of mixed.h share. Only these .c files include this header.
 */
#ifndef RBDUMP_MIXED_PARTS_H
#define RBDUMP_MIXED_PARTS_H

#include "base/addresses.h"
#include "mixed/describe.h"
#include "mixed/mixed_options.h"
#include "mixed/native_names.h"
#include "mixed/native_walk.h"
#include "mixed/sleepers.h"
#include "ruby/frame.h"

/* The maximum number of native functions in a trace. */
#define MIXED_FUNCTIONS_MAX 262144u

struct mixed {
	struct mixed_options options;
	uint64_t mapped; /* the hash of the target's executable mappings, at the time when their files were opened */
	struct native_walker walker;
	struct native_names names;
	struct merge_facts facts;
	size_t functions_left;
	struct sleepers sleepers; /* the threads whose stacks were copied before the pause */
	size_t *copies;		  /* for each native thread of the target: the index of the copy of its stack */
	size_t copies_capacity;
	size_t nr_copied;	      /* how many copies come before the copies of the fibers' stacks */
	struct address_map vm_stacks; /* maps the start of each VM stack to the end of that stack */
	struct address_map of_fibers; /* maps each rb_fiber_t to its index in `fibers` */
	uint64_t *fibers;	      /* the suspended fibers, in the order in which their stacks are copied */
	size_t nr_fibers, fibers_capacity;
};

/* Notes where the VM stacks are, because native stacks can contain them. Returns false if there is not enough memory. */
bool mixed_note_vm_stacks(struct mixed *mixed, const struct stack *stacks, size_t count);

/*
 * Unwinds the stack of a native thread. Returns false if there is not enough memory. The caller frees `ret` with
 * native_walk_clear() in any case.
 *   index  the thread's index in the target's list
 */
bool mixed_walk_thread(struct mixed *mixed, size_t index, struct native_walk *ret);

/* Like mixed_walk_thread(), but for a suspended fiber (rb_fiber_t). */
bool mixed_walk_fiber(struct mixed *mixed, const struct ruby *ruby, uint64_t fiber, struct native_walk *ret);

#endif
