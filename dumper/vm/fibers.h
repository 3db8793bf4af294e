/*
 * Fibers that have a stack of their own and do not run: which there are, whose they are, and who resumed whom.
 *
 * The fiber that a thread runs is part of the thread (vm/threads.h). One that was never resumed, or has ended, has no
 * stack and is not listed; nor does Ruby have anything to show of it.
 *
 * Where they are found:
 *   A Ruby that links all execution contexts (rb_jit_cont: always since 3.3, in 3.2 with a JIT): from the fiber that
 *   any thread runs, along the links in both directions. No symbol is needed for that.
 *   Any other: in Ruby's heap (vm/heap.h). All Fiber objects have one rb_data_type_t, that of the object that the root
 *   fiber of a thread gets when the thread first uses fibers; if no thread has such an object, there are no fibers, and
 *   nothing is searched. The search takes time, so it runs before the target is stopped, and what it finds is looked at
 *   again, as everything else, in the snapshot: a fiber that ended meanwhile is not there, and one that was made
 *   meanwhile is missed. Until 2.1 those of a thread are a ring, too: there only one of a thread that has ended is.
 * The number of stacks that Ruby's pool has given to fibers (since 2.7) tells whether any was missed.
 *
 * A fiber that was suspended does not move while its thread does not run: its stack is read as a thread's is, and as
 * right. A thread that is stopped in the middle of a switch has two fibers that stand still, and shows the one that it
 * left as the one it runs (cont.c, fiber_restore_thread) until it has arrived. Until 2.4 (cont_restore_thread) it takes
 * over the other's stack member by member, and what it shows meanwhile is out of bounds; the fiber that it left has
 * saved its own before. Each fiber has a VM stack of its own there, also where its machine stack is copied
 * (FIBER_USE_NATIVE).
 *
 * Facts: cont.c (rb_fiber_t, rb_jit_cont, fiber_init, fiber_switch, fiber_store, return_fiber, root_fiber_alloc,
 * fiber_pool_stack_acquire), 1.9.3 to 4.0.5 and head.
 */
#ifndef RBDUMP_FIBERS_H
#define RBDUMP_FIBERS_H

#include "vm/heap.h"
#include "vm/threads.h"

struct ruby_fiber {
	uint64_t address; /* rb_fiber_t */
	uint64_t ec;
	uint64_t thread;     /* rb_thread_t that it belongs to */
	size_t thread_index; /* of that in the list of threads; its count if the thread has ended */
	uint64_t resumed_by; /* rb_fiber_t; 0 if it was not resumed, but transferred to, or has yielded since */
	uint64_t resuming;   /* rb_fiber_t that it has resumed, until that yields; 0 if none */
	const char *state;   /* "resumed", "suspended" */
};

struct ruby_fibers {
	struct ruby_fiber *fibers; /* in the order that they were made, where that is known */
	size_t count;
	enum list_missing missing;
	uint64_t nr_missing; /* for LIST_MISSED */
	uint64_t type;	     /* rb_data_type_t to search the heap for; 0 if that is not needed */
};

/* The most fibers that are listed, and the most that are looked at: those without a stack are in the list, too. */
#define FIBERS_MAX	 16384u
#define FIBERS_LOOKED_AT 131072u

/*
 * Lists the fibers, as many as there is room and time for (memory_limit()).
 *   found  what a search of the heap for `type` gave; empty if there was none
 * Returns false if out of memory; otherwise `ret` is to be given to fibers_clear().
 */
bool fibers_list(const struct ruby *ruby, const struct ruby_threads *threads, const struct heap_finds *found,
		 struct ruby_fibers *ret);
void fibers_clear(struct ruby_fibers *fibers);

#endif
