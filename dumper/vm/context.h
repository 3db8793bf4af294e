/*
 * Execution contexts: what has a VM stack. Since 2.5 a thread points to the one that it runs in
 * (rb_execution_context_t); until 2.4 it is one itself (vm_core.h, rb_thread_t).
 */
#ifndef RBDUMP_CONTEXT_H
#define RBDUMP_CONTEXT_H

#include "vm/access.h"

/* Where an execution context has what. */
struct context_members {
	enum layout_member_id vm_stack, vm_stack_size, cfp, fiber_ptr;
};

static inline struct context_members context_members(const struct layout *layout)
{
	if (layout_has(layout, F_thread_ec))
		return (struct context_members){F_ec_vm_stack, F_ec_vm_stack_size, F_ec_cfp, F_ec_fiber_ptr};
	return (struct context_members){F_thread_vm_stack, F_thread_vm_stack_size, F_thread_cfp, F_thread_fiber_ptr};
}

/* The execution context that a thread (rb_thread_t) runs in. */
static inline uint64_t context_of_thread(struct access *access, uint64_t thread)
{
	return layout_has(access->layout, F_thread_ec) ? access_member(access, thread, F_thread_ec) : thread;
}

/* The thread that an execution context says it is of. */
static inline uint64_t context_thread(struct access *access, uint64_t ec)
{
	return layout_has(access->layout, F_ec_thread_ptr) ? access_member(access, ec, F_ec_thread_ptr) : ec;
}

/* How many bytes an execution context has. */
static inline uint64_t context_size(const struct layout *layout)
{
	return (uint64_t)layout->sizes[layout_has(layout, F_thread_ec) ? S_ec : S_thread].value;
}

#endif
