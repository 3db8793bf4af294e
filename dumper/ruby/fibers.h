/*
 * Lists all fibers that have a stack and are not running. For each fiber, the list also contains the fiber's thread,
 * and the fiber that has resumed this fiber.
 *
 * The current fiber of a thread is listed with the thread (see ruby/threads.h). A fiber that was never resumed, or has
 * ended, has no stack and is not listed. Ruby itself shows no stack for such a fiber either.
 *
 * rbdump finds the fibers in one of two ways:
 *   - Some Rubies keep all execution contexts in a linked list (rb_jit_cont): Ruby 3.2 if a JIT is on, and Ruby 3.3 and
 *     later. In these Rubies, the search begins at the current fiber of some thread, and follows the links in both
 *     directions. This search does not need an ELF symbol.
 *   - In all other Rubies, Ruby's heap is searched (see ruby/heap_search.h). All Fiber objects have the same
 *     rb_data_type_t, so rbdump searches for objects of this type. rbdump finds the address of the type in the Fiber
 *     object of a root fiber. The root fiber of a thread gets a Fiber object when the thread first uses fibers. If no
 *     root fiber has a Fiber object, all fibers are root fibers, and the heap is not searched. The search takes time,
 *     so a verb that prints stacks runs the search before it stops the target. Each fiber that was found is read again
 *     in the snapshot. A fiber that has ended since the search is not listed, and a fiber that was made since the
 *     search can be missed. Up to Ruby 2.1, Ruby links the fibers of each thread in a ring, and rbdump also follows
 *     this ring. So in these Rubies, a fiber can be missed only if its thread has ended.
 * Since Ruby 2.7, there is a pool of fiber stacks. The pool counts the stacks that are in use, and this count shows
 * whether any fiber was missed.
 *
 * A suspended fiber can change only while its thread runs. So the stack of a suspended fiber is read like the stack of
 * a thread, and the result is equally reliable. While a thread switches from an old fiber to a new fiber, the old fiber
 * can already have the status FIBER_SUSPENDED, and the new fiber can already have the status FIBER_RESUMED. But until
 * the switch is done, the thread's members refer to the old fiber (cont.c, fiber_store, fiber_restore_thread). In Ruby
 * 2.4 and older, some members of a thread describe the thread's stack. The function cont_restore_thread() copies these
 * members, one by one, from the new fiber to the thread. During this copying, the thread's members can contradict each
 * other. For example, the thread's control frame can be outside the thread's stack. When cont_restore_thread() begins,
 * the members that describe the old fiber's stack are already saved in the old fiber. Each fiber has its own VM stack,
 * even in a Ruby that copies machine stacks (FIBER_USE_NATIVE is 0).
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: cont.c (rb_fiber_t, rb_jit_cont, fiber_init, fiber_switch,
 * fiber_store, return_fiber, root_fiber_alloc, fiber_pool_stack_acquire).
 */
#ifndef RBDUMP_FIBERS_H
#define RBDUMP_FIBERS_H

#include "ruby/heap_search.h"
#include "ruby/threads.h"

struct ruby_fiber {
	uint64_t address; /* rb_fiber_t */
	uint64_t ec;
	uint64_t thread; /* the rb_thread_t to which the fiber belongs */
	/* The index of the fiber's thread in the list of threads; if the thread has ended, the length of that list. */
	size_t thread_index;
	/*
	 * The rb_fiber_t that resumed this fiber. 0 if this fiber has yielded since then, or was entered by
	 * Fiber#transfer.
	 */
	uint64_t resumed_by;
	/*
	 * The rb_fiber_t that this fiber has resumed. 0 if this fiber has resumed no fiber, or if the resumed fiber has
	 * yielded.
	 */
	uint64_t resuming;
	const char *state; /* "resumed", "suspended" */
};

struct ruby_fibers {
	struct ruby_fiber *fibers; /* in order of creation, if this order is known */
	size_t count;
	enum list_missing missing;
	uint64_t nr_missing; /* for LIST_MISSED */
	/* The address of the rb_data_type_t of Fiber objects, for heap_find(). 0: the heap is not searched. */
	uint64_t type;
};

/* The maximum number of fibers in a list. */
#define FIBERS_MAX 16384u
/* The maximum number of fibers that are examined, including fibers without a stack. */
#define FIBERS_LOOKED_AT 131072u

/*
 * Lists the fibers, at most FIBERS_MAX. Stops early if the time limit is reached (see memory_limit()).
 *   found  the result of heap_find() for the type that an earlier call of fibers_list() has stored in `ret->type`;
 *          empty if the heap was not searched
 * Returns false if there is not enough memory. Otherwise the caller frees `ret` with fibers_clear().
 */
bool fibers_list(const struct ruby *ruby, const struct ruby_threads *threads, const struct heap_finds *found,
		 struct ruby_fibers *ret);
void fibers_clear(struct ruby_fibers *fibers);

#endif
