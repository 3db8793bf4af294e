/*
 * Copies of the native stacks of a target's threads. While a process is stopped, only the bytes are copied. They are
 * unwound after the process goes on (mixed/native_walk.h).
 *
 * A copy begins at the page of the stack pointer, and ends where the mapping of the stack ends, but has at most
 * NATIVE_STACK_MAX bytes. All copies together have at most NATIVE_STACKS_MAX bytes.
 *
 * A native stack can contain a VM stack of Ruby, which is large: Ruby allocates the VM stacks of threads and fibers
 * there (up to 3.2 thread.c, thread_start_func_2(): ALLOCA_N; cont.c, fiber_initialize_coroutine()). A VM stack
 * contains no frames of native functions, so the copy omits the VM stack, and has two parts.
 *
 * If no VM stack is known in a stack that is too long, the copy has the innermost part and the last
 * NATIVE_STACK_OUTERMOST bytes. In 2.7, a thread that waits for the GVL for the first time has not noted the address of
 * its VM stack yet. So this VM stack (1 MiB) is not omitted, but the functions on both sides of it are copied.
 */
#ifndef RBDUMP_NATIVE_STACKS_H
#define RBDUMP_NATIVE_STACKS_H

#include "target/target.h"

#define NATIVE_STACK_MAX       (1u << 20)
#define NATIVE_STACK_OUTERMOST (64u << 10)
#define NATIVE_STACKS_MAX      (16u << 20)

/* Bytes that were copied. */
struct native_part {
	uint64_t start; /* the address of the first byte */
	size_t length;	/* 0: nothing was copied */
	const uint8_t *bytes;
};

#define NATIVE_PARTS 2

/* The copy of one stack. */
struct native_stack {
	struct native_part parts[NATIVE_PARTS]; /* the innermost part first */
	bool cut;				/* bytes other than those of a known VM stack are missing */
};

struct native_stacks;

/* Returns NULL if there is not enough memory. */
struct native_stacks *native_stacks_create(void);
void native_stacks_destroy(struct native_stacks *stacks); /* NULL is fine */

/*
 * Sets which parts of the native stacks are not copied.
 *   holes  for each VM stack, the address where it begins and the address where it ends; sorted. Must stay valid until
 *          the next call, or until `stacks` is destroyed
 */
void native_stacks_omit(struct native_stacks *stacks, const struct address_map *holes);

/*
 * Forgets all copies, and makes room for a list of `count` stacks. Returns false if there is not enough memory.
 */
bool native_stacks_prepare(struct native_stacks *stacks, size_t count);

/* Makes room for a longer list, and forgets nothing. Returns false if there is not enough memory. */
bool native_stacks_reserve(struct native_stacks *stacks, size_t count);

/* Lets the kernel provide memory for copies of `count` more stacks now, and not while the process is stopped. */
void native_stacks_provide(struct native_stacks *stacks, size_t count);

/* Whether at least half of the bytes that may be copied are used. */
bool native_stacks_are_crowded(const struct native_stacks *stacks);

/* Forgets all copies. */
void native_stacks_forget(struct native_stacks *stacks);

/* Forgets all copies except those of the first `count` stacks. */
void native_stacks_keep(struct native_stacks *stacks, size_t count);

/*
 * Says that a stack is wanted. The first stack after native_stacks_forget() has the index 0, the next one 1, and so on.
 * More stacks than native_stacks_prepare() made room for are ignored.
 *   sp  the stack pointer; 0 if it is not known: then the copy is empty
 */
void native_stacks_want(struct native_stacks *stacks, const struct target *target, uint64_t sp);

/*
 * Copies the stacks that are wanted and not copied yet, in as few system calls as possible. The process may be
 * running. In that case, the bytes of a copy can be from different moments.
 */
void native_stacks_copy(struct native_stacks *stacks, const struct target *target);

/* The copy of the stack with the given index. It is valid until the copies are forgotten. */
struct native_stack native_stacks_of(const struct native_stacks *stacks, size_t index);

#endif
