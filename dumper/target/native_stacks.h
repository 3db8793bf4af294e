/*
 * Copies of the native stacks of a target's threads. While a process is stopped, rbdump only copies the bytes. rbdump
 * unwinds the copies after it has resumed the process (mixed/native_walk.h).
 *
 * A copy begins at the start of the page that contains the stack pointer. The copy ends where the mapping of the stack
 * ends, but has at most NATIVE_STACK_MAX bytes. All copies together have at most NATIVE_STACKS_MAX bytes.
 *
 * A native stack can contain a VM stack, which is large: the VM stack of a fiber (cont.c, fiber_initialize_coroutine()),
 * or, up to Ruby 3.2, the VM stack of a thread (thread.c, thread_start_func_2(): ALLOCA_N). A VM stack contains no frames
 * of native functions. So the copy omits the VM stack, and has two parts: the bytes before the VM stack, and the bytes
 * after it.
 *
 * If a native stack is too long, and rbdump does not know of a VM stack in it, the two parts of the copy are the
 * innermost bytes and the last NATIVE_STACK_OUTERMOST bytes. In Ruby 2.7, a thread that waits for the GVL for the first
 * time has not stored the address of its VM stack yet. So rbdump does not know which bytes are this VM stack (1 MiB),
 * and cannot omit exactly these bytes. But the two parts still contain the frames of the functions on both sides of the
 * VM stack.
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
	bool cut;				/* some bytes outside of the known VM stacks are missing */
};

struct native_stacks;

/* Returns NULL if there is not enough memory. */
struct native_stacks *native_stacks_create(void);
void native_stacks_destroy(struct native_stacks *stacks); /* NULL is fine */

/*
 * Sets which parts of the native stacks are not copied.
 *   holes  for each VM stack, the start address and the end address; sorted by the start address. The map must stay
 *          valid until the next call of this function, or until `stacks` is destroyed
 */
void native_stacks_omit(struct native_stacks *stacks, const struct address_map *holes);

/*
 * Forgets all copies, and makes room for a list of `count` stacks. Returns false if there is not enough memory.
 */
bool native_stacks_prepare(struct native_stacks *stacks, size_t count);

/* Makes room for a list of `count` stacks, and keeps the copies. Returns false if there is not enough memory. */
bool native_stacks_reserve(struct native_stacks *stacks, size_t count);

/*
 * Makes the kernel provide memory for the copies of `count` more stacks. Call this function before the process is stopped,
 * because the kernel needs time for this.
 */
void native_stacks_provide(struct native_stacks *stacks, size_t count);

/* Whether the stacks in the list use more than half of NATIVE_STACKS_MAX. */
bool native_stacks_are_crowded(const struct native_stacks *stacks);

/* Forgets all copies. */
void native_stacks_forget(struct native_stacks *stacks);

/* Forgets all copies except those of the first `count` stacks. */
void native_stacks_keep(struct native_stacks *stacks, size_t count);

/*
 * Adds a stack to the list of stacks to copy. The first stack after native_stacks_forget() has the index 0, the next
 * one 1, and so on. If the list has no room for the stack, ignores the stack. To make room, call
 * native_stacks_prepare() or native_stacks_reserve() before this function.
 *   sp  the stack pointer. If the stack pointer is not known, pass 0: the copy is then empty
 */
void native_stacks_want(struct native_stacks *stacks, const struct target *target, uint64_t sp);

/*
 * Copies those stacks in the list that are not copied yet, with as few system calls as possible. The process may be
 * running. In that case, the bytes of a copy can be from different moments.
 */
void native_stacks_copy(struct native_stacks *stacks, const struct target *target);

/* The copy of the stack with the given index. It is valid until the copies are forgotten. */
struct native_stack native_stacks_of(const struct native_stacks *stacks, size_t index);

#endif
