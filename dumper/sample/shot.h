/*
 * A shot: the bytes of one thread's stack, copied in as few system calls as there can be, and those of the objects that
 * its frames lead to. Nothing is named here: the shot is laid over a snapshot (memory_overlay()) and read like any.
 *
 * What is copied of a stack: the thread's pointer to its execution context; the context; the values, from the lowest
 * word to the environment of the innermost frame; the control frames, from the innermost to the end; and how far the
 * garbage collector has come (vm/collections.h), unless it is copied naively. Where the stack is is guessed from the
 * shot before (the aim); a shot that the aim did not cover is taken again.
 *
 * Facts: vm_core.h (rb_execution_context_t, VM_ENV_DATA_INDEX_), 2.7.4 to 4.0.5.
 */
#ifndef RBDUMP_SHOT_H
#define RBDUMP_SHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"
#include "memory/memory.h"
#include "target/target.h"
#include "validate/validate.h"
#include "vm/ruby.h"

/* The most bytes of one stack that are copied: 10,000 frames of ordinary methods fit. */
#define SHOT_STACK_MAX (4u << 20)

/* Where a thread's stack is thought to be. */
struct shot_aim {
	uint64_t thread;   /* rb_thread_t */
	uint64_t ec;	   /* what it points to */
	uint64_t vm_stack; /* the stack, [vm_stack, end) */
	uint64_t end;
	uint64_t values_end;   /* copy the values [vm_stack, values_end) */
	uint64_t frames_start; /* and the frames [frames_start, end) */
	unsigned int shots;    /* since it was last drawn in */
};

struct shot;

/* Makes room for shots of a target; its layout and the target must outlive it. NULL if out of memory. */
struct shot *shot_create(const struct ruby *ruby, const struct target *target);
void shot_destroy(struct shot *shot); /* NULL is fine */

enum shot_result {
	SHOT_COVERED,	  /* the stack is in it */
	SHOT_MISSED,	  /* the aim was off; it has been corrected: copy again */
	SHOT_CONTRADICTS, /* the stack is in it, as it was copied first; the second copy is another */
	SHOT_MOVED,	  /* what was copied cannot be a stack: *reason says why */
	SHOT_FAILED,	  /* it cannot be read: *reason says why */
	SHOT_NONE,	  /* there is none: the thread has not begun, or has ended */
};

/* How a stack is copied. */
enum shot_way {
	SHOT_ONCE,  /* in one call */
	SHOT_TWICE, /* in one call, twice, the second time in the reverse order; both must agree where the stack is */
	SHOT_NAIVE, /* context, frames and values by calls of their own */
};

/*
 * Makes room for what is aimed at, so that shot_copy() need not while the target is stopped. False if out of memory:
 * then shot_copy() fails.
 */
bool shot_make_ready(struct shot *shot, const struct shot_aim *aim, enum shot_way way);

/* Copies the stack that is aimed at; corrects the aim. */
enum shot_result shot_copy(struct shot *shot, struct shot_aim *aim, enum shot_way way, enum reason *reason);

/*
 * Copies the objects that the innermost `frames` frames of a covered shot lead to: code, method entries, environments
 * on the heap; those that were copied before for this shot are dropped. What cannot be read is left out, and missed by
 * whoever reads it.
 */
void shot_copy_objects(struct shot *shot, size_t frames);

/*
 * Lays the shot over a snapshot: what is read of the stack then comes from the shot alone, objects from it where it has
 * them. Until the next shot_copy(), shot_copy_objects() or memory_overlay().
 */
void shot_lay(const struct shot *shot, struct memory *memory);

#endif
