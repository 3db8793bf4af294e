/*
 * Puts decoded stacks into the tables of a recording. Equal stacks share one node.
 */
#ifndef RBDUMP_STACKS_H
#define RBDUMP_STACKS_H

#include "recording/profile.h"
#include "sampling/mixed_stack.h"
#include "trace/trace.h"

/*
 * A cache of functions in the tables. For a frame of Ruby code or of a C function that Ruby calls, the key of an entry
 * is trace_frame.method. For a native function, the key is a hash of the addresses of two strings: the name of the
 * function and the path of its file. A zeroed struct is an empty cache.
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
 * stack; UINT32_MAX if there is not enough memory. The caller must clear `functions` when new tables begin. A torn or
 * unreadable stack becomes one frame. The name of this frame gives the reason, such as "(torn: window)".
 */
uint32_t stacks_add(struct profile *tables, struct stacks_functions *functions, const struct trace_thread *stack);

/* The same for a complete or truncated stack, with all native functions in their places among the frames of Ruby. */
uint32_t stacks_add_mixed(struct profile *tables, struct stacks_functions *functions, const struct trace_thread *stack,
			  const struct mixed_stack *mixed);

/*
 * Adds a frame named "(torn: window)" to a stack, as the new innermost frame. This frame stands for a frame that Ruby
 * may not have written completely when the stack was copied. `node` is the node of the stack before the call. Returns
 * the new node; UINT32_MAX if there is not enough memory.
 */
uint32_t stacks_add_window(struct profile *tables, uint32_t node);

/*
 * Adds native frames to a stack, as the new innermost frames. `node` is the node of the stack before the call. If
 * `native->cut` is set, first adds the mark "(native frames missing)". Returns the new node; UINT32_MAX if out of
 * memory.
 */
uint32_t stacks_add_native(struct profile *tables, struct stacks_functions *functions, uint32_t node,
			   const struct inner_functions *native);

/*
 * Adds one frame in place of a missing stack. Returns the node of the frame; UINT32_MAX if there is not enough memory.
 * The name of the frame says why there is no stack: "(what)" or "(what: reason)".
 */
uint32_t stacks_add_mark(struct profile *tables, const char *what, enum reason reason);

#endif
