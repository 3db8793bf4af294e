/*
 * The stack of a sample with all its native functions: also those between the frames of Ruby. The whole native stack is
 * copied while the thread is stopped (sample.h, NATIVE_WHOLE). Afterwards, it is unwound and merged with Ruby's frames in the
 * same way as in a dump (mixed/native_walk.h, mixed/merge.h).
 */
#ifndef RBDUMP_MIXED_STACK_H
#define RBDUMP_MIXED_STACK_H

#include "sampling/native_frames.h"
#include "sampling/sample.h"

/* A native function, or the place of a frame of Ruby. */
struct mixed_frame {
	bool native;
	struct native_frame function; /* if `native` is set */
	uint64_t cfp; /* if `native` is not set: the address of the control frame (rb_control_frame_t) */
};

/* A zeroed struct is empty. */
struct mixed_stack {
	struct mixed_frame *of; /* the innermost frame is first */
	size_t count, capacity;
	/*
	 * Native functions are missing: the native stack could not be followed to its end, or the number of the
	 * interpreter's functions in it does not fit the number of Ruby's frames, so all native functions are left out.
	 */
	bool cut;
};

struct mixed_stacks;

/*
 * Prepares to find mixed stacks. The session must outlive the result. Fails if the mapped files of the process cannot be
 * opened (machine_code_open()), or if there is not enough memory.
 */
struct error *mixed_stacks_create(const struct session *session, struct mixed_stacks **ret);
void mixed_stacks_destroy(struct mixed_stacks *stacks); /* NULL is fine */

/*
 * Finds the mixed stack of a sample. Call this function while the frames that the sampler has walked (`sample->walked`) are
 * valid. The result is valid until the next call. It is empty, and `cut` is set, if the frames or the native stack are not
 * known, or if there is not enough memory.
 */
const struct mixed_stack *mixed_stacks_take(struct mixed_stacks *stacks, const struct sample *sample);

/* Reads the mappings of the process again, and forgets what was read of methods. Call this function from time to time. */
void mixed_stacks_forget(struct mixed_stacks *stacks);

#endif
