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
#include "vm/collections.h"
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

/* Bytes of the target that are copied in the same call as a stack, behind it. */
struct shot_beside {
	uint64_t address;
	uint32_t length;
};

#define SHOT_BESIDE_MAX 12u

/* From now on, each shot_copy() but a naive one copies those, too: at most SHOT_BESIDE_MAX. */
void shot_set_beside(struct shot *shot, const struct shot_beside *pieces, size_t count);
/* What was copied of them, one after the other; NULL if the last shot is not covered. */
const uint8_t *shot_beside(const struct shot *shot);

/* Of a covered shot: the execution context, what it says of its stack, and bytes of both; NULL if it has not all. */
uint64_t shot_context(const struct shot *shot);
const struct stack_facts *shot_facts(const struct shot *shot);
const uint8_t *shot_bytes(const struct shot *shot, uint64_t address, size_t length);

/*
 * How far the garbage collector had come when a covered shot was taken; and how far it has come by now, which is read
 * anew. Both leave the memory of `ruby` without an overlay.
 */
struct collections shot_collections(const struct shot *shot, const struct ruby *ruby);
struct collections shot_collections_now(struct shot *shot, const struct ruby *ruby);

/*
 * Copies the objects that the innermost `frames` frames of a covered shot lead to: code, method entries, environments
 * on the heap; those that were copied before for this shot are dropped. What cannot be read is left out, and missed by
 * whoever reads it.
 */
void shot_copy_objects(struct shot *shot, size_t frames);

/*
 * Whether what its frames lead to is on the native stack in part, which changes as soon as the thread goes on: that of
 * ZJIT's frames is.
 */
bool shot_leads_to_native_stack(const struct shot *shot);

/* Whether all that its frames lead to was copied, as far as it can be read: there is a limit to how much that is. */
bool shot_has_all_objects(const struct shot *shot);

/*
 * Lays the shot over a snapshot: what is read of the stack then comes from the shot alone, objects from it where it has
 * them. Until the next shot_copy(), shot_copy_objects() or memory_overlay().
 */
void shot_lay(const struct shot *shot, struct memory *memory);

#endif
