/*
 * Control frames: which calls an execution context is in the middle of. Facts: vm_core.h (rb_control_frame_t,
 * VM_ENV_DATA_INDEX_), vm.c, vm_insnhelper.c (rb_vm_frame_method_entry, check_method_entry), 1.9.3 to 4.0.5 and head.
 */
#ifndef RBDUMP_FRAME_H
#define RBDUMP_FRAME_H

#include "validate/validate.h"
#include "vm/ruby.h"

struct frame {
	uint64_t cfp; /* its address */
	uint64_t pc;
	uint64_t iseq; /* rb_iseq_t; for FRAME_RUBY */
	/* rb_callable_method_entry_t, 0 if the frame has none; until 2.2 many of Ruby code have none. */
	uint64_t method;
	enum frame_kind kind;
	/* The method entry is that of the frame itself: it is no block's, nor of code within a method. */
	bool own_method;
	bool jit;	    /* a JIT's code has made it, or runs it (jit_frame.h) */
	bool finish;	    /* it is the first that a vm_exec() runs (VM_FRAME_FLAG_FINISH) */
	enum reason reason; /* for FRAME_UNREADABLE */
};

struct stack {
	uint64_t ec;
	struct stack_facts facts;
	bool started;	    /* false: the thread or fiber has no stack yet, or no longer, and so no frames */
	enum reason reason; /* why there are no frames, or not all */

	struct frame *frames; /* innermost first */
	size_t nr_frames;
};

/*
 * Walks the frames of an execution context (rb_execution_context_t at `ec`).
 *   thread  the rb_thread_t that it must belong to
 *   limit   how many frames to walk at most
 *   ret     to be given to stack_clear(); frames that fail a check are in it as FRAME_UNREADABLE, and those that there
 *           was no time for (memory_is_over()) are not in it
 * Returns false if out of memory.
 */
bool stack_walk(const struct ruby *ruby, uint64_t ec, uint64_t thread, size_t limit, struct stack *ret);
void stack_clear(struct stack *stack);

#endif
