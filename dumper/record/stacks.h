/*
 * Puts decoded stacks into the tables of a recording. Equal stacks share one node.
 */
#ifndef RBDUMP_STACKS_H
#define RBDUMP_STACKS_H

#include "recording/profile.h"
#include "sampling/native_frames.h"
#include "trace/trace.h"

/*
 * A cache of functions in the tables. The key of an entry is trace_frame.method, or a number that is made from the
 * address of a native function. A zeroed struct is an empty cache.
 */
#define STACKS_FUNCTIONS 4096u
struct stacks_functions {
	struct {
		uint64_t method;
		uint32_t function;
	} of[STACKS_FUNCTIONS];
};

/*
 * Adds a decoded stack to the tables. If the tables already contain this stack, adds nothing. Returns the node of the
 * stack; UINT32_MAX if out of memory. `functions` must be cleared when new tables begin. A torn or unreadable stack
 * becomes one frame. The name of this frame gives the reason, such as "(torn: window)".
 */
uint32_t stacks_add(struct profile *tables, struct stacks_functions *functions, const struct trace_thread *stack);

/*
 * Adds a frame named "(torn: window)" inside the innermost frame of a stack. The frame stands for a frame that the
 * target may not have finished when the stack was copied. `node` is the node of this stack.
 */
uint32_t stacks_add_window(struct profile *tables, uint32_t node);

/*
 * Adds native frames inside the innermost frame of a stack. `node` is the node of this stack. If `native->cut` is set,
 * first adds the mark "(native frames missing)". Returns the new node; UINT32_MAX if out of memory.
 */
uint32_t stacks_add_native(struct profile *tables, struct stacks_functions *functions, uint32_t node,
			   const struct native_stack *native);

/*
 * Adds one frame in place of a missing stack, and returns the node of the frame; UINT32_MAX if out of memory. The name
 * of the frame says why there is no stack: "(what)" or "(what: reason)".
 */
uint32_t stacks_add_mark(struct profile *tables, const char *what, enum reason reason);

#endif
