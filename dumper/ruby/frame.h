/*
 * Control frames: the active calls of an execution context. Based on Ruby's sources, 1.9.3 to 4.0.5 and head: vm_core.h
 * (rb_control_frame_t, VM_ENV_DATA_INDEX_*), vm.c, vm_insnhelper.c (rb_vm_frame_method_entry, check_method_entry).
 */
#ifndef RBDUMP_FRAME_H
#define RBDUMP_FRAME_H

#include "check/validate.h"
#include "ruby/ruby.h"

struct frame {
	uint64_t cfp; /* address of the control frame */
	uint64_t pc;
	uint64_t iseq; /* rb_iseq_t, for FRAME_RUBY */
	/*
	 * rb_callable_method_entry_t; 0 if the frame has no method entry. Up to Ruby 2.2, many frames of Ruby code have
	 * no method entry.
	 */
	uint64_t method;
	enum frame_kind kind;
	/*
	 * true: the frame runs the code of its method entry; false: the frame runs other code, such as a block in that
	 * method
	 */
	bool own_method;
	bool jit;	    /* JIT-compiled code has pushed the frame, or the frame runs such code (see jit_frame.h) */
	bool finish;	    /* a call of vm_exec() has begun with this frame (VM_FRAME_FLAG_FINISH) */
	enum reason reason; /* for FRAME_UNREADABLE */
};

struct stack {
	uint64_t ec;
	struct stack_facts facts;
	bool started;	    /* false: the thread or fiber has no stack, because it has not started or has ended */
	enum reason reason; /* why some or all frames are missing or unreadable */

	struct frame *frames; /* innermost first */
	size_t nr_frames;
};

/* Frames of one stack that are already known and are not read again (sampling/known_frames.h). */
struct known_stack {
	uint64_t end;	      /* the address at which the oldest frame ends */
	struct frame *frames; /* oldest first; a frame that is not known has the kind FRAME_UNREADABLE */
	size_t count;
};

/* The frame at the address `cfp`; NULL if this frame is not known. */
static inline const struct frame *known_stack_frame(const struct known_stack *known, uint64_t cfp, uint64_t frame_size)
{
	const uint64_t from_end = known->count > 0 && cfp < known->end ? (known->end - cfp) / frame_size : 0;

	return from_end > 0 && from_end <= known->count && known->frames[from_end - 1].kind != FRAME_UNREADABLE
		   ? &known->frames[from_end - 1]
		   : NULL;
}

/*
 * Walks the frames of an execution context (rb_execution_context_t at `ec`).
 *   thread  the rb_thread_t that must own the execution context
 *   limit   the maximum number of frames to walk
 *   ret     receives the stack; the caller frees it with stack_clear(). A frame that fails a check gets the kind
 *           FRAME_UNREADABLE. If the time limit is reached (see memory_is_over()), the frames that were not walked yet
 *           are missing
 * Returns false if there is not enough memory.
 */
bool stack_walk(const struct ruby *ruby, uint64_t ec, uint64_t thread, size_t limit, struct stack *ret);
void stack_clear(struct stack *stack);

#endif
