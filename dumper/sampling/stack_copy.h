/*
 * A stack copy: the bytes of one thread's stack, copied in as few system calls as possible. A stack copy can also
 * contain the bytes of the objects that the frames of the stack refer to (stack_objects.h). To read the copy, call
 * stack_copy_lay(), which puts the copy over a snapshot of the target's memory.
 *
 * A copy contains the thread's pointer to its execution context, and the execution context itself. The copy contains
 * the values on the stack, from the lowest word to the end of the highest environment. The copy contains the control
 * frames, from the innermost frame to the end of the stack. The copy also contains the state of the garbage collector
 * (ruby/collections.h). From the previous copy of the thread's stack, rbdump predicts at which addresses the stack is
 * now. These addresses are called the extent of the stack (extent.h). If the extent does not contain the whole stack,
 * the stack is copied again.
 *
 * This module follows the source code of Ruby 2.7.4 to 4.0.5: vm_core.h (rb_execution_context_t, VM_ENV_DATA_INDEX_*).
 */
#ifndef RBDUMP_STACK_COPY_H
#define RBDUMP_STACK_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check/validate.h"
#include "memory/memory.h"
#include "ruby/collections.h"
#include "ruby/ruby.h"
#include "sampling/extent.h"
#include "target/target.h"

struct stack_copy;

/*
 * Creates an empty copy. `target`, and the layout of `ruby`, must outlive the copy. Returns NULL if there is not enough
 * memory.
 */
struct stack_copy *stack_copy_create(const struct ruby *ruby, const struct target *target);
void stack_copy_destroy(struct stack_copy *copy); /* NULL is fine */

enum copy_result {
	COPY_COVERED,	  /* the copy contains the whole stack */
	COPY_MISSED,	  /* the extent did not contain the whole stack. The extent is now corrected: copy again */
	COPY_CONTRADICTS, /* the stack was copied twice, and the copies differ. The first copy is kept */
	COPY_MOVED,	  /* the copied bytes cannot be a stack: *reason says why */
	COPY_FAILED,	  /* the stack cannot be copied: *reason says why */
	COPY_NONE,	  /* there is no stack: the thread has not begun, or has ended */
};

/* How a stack is copied. */
enum copy_way {
	COPY_ONCE, /* the stack is copied once, in one system call */
	/*
	 * The stack is copied twice in one system call. The second time, the byte ranges of the stack are copied in
	 * reverse order. If the two copies differ, stack_copy_take() returns COPY_CONTRADICTS.
	 */
	COPY_TWICE,
};

/*
 * Allocates memory for stack_copy_take(), so that stack_copy_take() need not allocate memory while the target is
 * stopped. Returns false if there is not enough memory. In this case, stack_copy_take() tries again to allocate memory,
 * and returns COPY_FAILED if there is still not enough.
 */
bool stack_copy_make_ready(struct stack_copy *copy, const struct stack_extent *extent, enum copy_way way);

/* Copies the stack, and corrects the extent. *reason receives what is wrong, or REASON_NONE if nothing is wrong. */
enum copy_result stack_copy_take(struct stack_copy *copy, struct stack_extent *extent, enum copy_way way,
				 enum reason *reason);

/* After this call, each call of stack_copy_take() also copies `pieces`. `count` is at most COPY_BESIDE_MAX. */
void stack_copy_set_beside(struct stack_copy *copy, const struct copy_beside *pieces, size_t count);
/*
 * Returns the copied bytes of the pieces that were passed to stack_copy_set_beside(), one piece after the other.
 * Returns NULL if the last copy lacks a part of the stack.
 */
const uint8_t *stack_copy_beside(const struct stack_copy *copy);

/*
 * Call stack_copy_lay() and the next five functions only if the copy contains the whole stack (COPY_COVERED or
 * COPY_CONTRADICTS).
 */

/* The address of the rb_thread_t. */
uint64_t stack_copy_thread(const struct stack_copy *copy);
/* The address of the execution context. */
uint64_t stack_copy_context(const struct stack_copy *copy);
/* Returns what the execution context stores about the stack: location, size, and address of the innermost frame. */
const struct stack_facts *stack_copy_facts(const struct stack_copy *copy);
/*
 * Returns the `length` copied bytes at `address`. Returns NULL if these bytes are not all in one piece of the stack.
 */
const uint8_t *stack_copy_bytes(const struct stack_copy *copy, uint64_t address, size_t length);

/*
 * Returns the state of the garbage collector at the time when the copy was taken. Removes any overlay from
 * `ruby->memory`.
 */
struct collections stack_copy_collections(const struct stack_copy *copy, const struct ruby *ruby);
/*
 * Reads the current state of the garbage collector from the target. If the state can be read, also removes any overlay
 * from `ruby->memory`.
 */
struct collections stack_copy_collections_now(struct stack_copy *copy, const struct ruby *ruby);

/* Which parts of a copy are packed. */
enum stack_copy_parts {
	PACK_NO_STACK, /* no stack and no objects; for a copy that lacks a part of the stack, and for a cache hit */
	PACK_OBJECTS,  /* everything except the frames and the values of the stack; for a stack that was walked */
	PACK_ALL,
};

/*
 * Packs a stack copy: copies it into `room`. `room` must have stack_copy_packed_length() bytes, and must be aligned for
 * a struct. The length is always a multiple of 16. The packed copy uses no memory outside of `room`. Do not call
 * stack_copy_take() or stack_copy_destroy() for the packed copy.
 */
size_t stack_copy_packed_length(const struct stack_copy *copy, enum stack_copy_parts parts);
struct stack_copy *stack_copy_pack(const struct stack_copy *copy, enum stack_copy_parts parts, void *room);

/*
 * Puts the copy over a snapshot of the target's memory. After this call, a function that reads the stack through the
 * snapshot gets only the bytes of the copy. An object is read from the copy if the copy contains it, and otherwise from
 * the snapshot. The copy stays over the snapshot until the next call of stack_copy_take(), stack_objects_copy() or
 * memory_overlay().
 */
void stack_copy_lay(const struct stack_copy *copy, struct memory *memory);

#endif
