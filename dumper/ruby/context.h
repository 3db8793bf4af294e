/*
 * Execution contexts. Each execution context has a VM stack. Since Ruby 2.5 an execution context
 * (rb_execution_context_t) is part of a fiber, and a thread points to the execution context of its current fiber. Up to
 * Ruby 2.4 a thread (rb_thread_t) is itself an execution context. When a thread of such a Ruby leaves a fiber, the
 * fiber gets a copy of the rb_thread_t. In this copy, only the members that describe the stack and its owner are valid
 * (vm_core.h, rb_thread_t; cont.c, cont_save_thread, cont_init, 1.9.3 to 2.4.10).
 */
#ifndef RBDUMP_CONTEXT_H
#define RBDUMP_CONTEXT_H

#include "ruby/access.h"
#include "ruby/value.h"

/*
 * The members of an execution context. `in_fiber` is an exception: it is a member of a fiber, and contains the
 * execution context of that fiber.
 */
struct context_members {
	enum layout_member_id vm_stack, vm_stack_size, cfp, fiber_ptr, in_fiber;
};

static inline struct context_members context_members(const struct layout *layout)
{
	if (layout_has(layout, F_thread_ec))
		return (struct context_members){F_ec_vm_stack, F_ec_vm_stack_size, F_ec_cfp, F_ec_fiber_ptr,
						F_fiber_ec};
	return (struct context_members){F_thread_vm_stack, F_thread_vm_stack_size, F_thread_cfp, F_thread_fiber_ptr,
					F_fiber_saved_thread};
}

/* The current execution context of a thread (rb_thread_t). */
static inline uint64_t context_of_thread(struct access *access, uint64_t thread)
{
	return layout_has(access->layout, F_thread_ec) ? access_member(access, thread, F_thread_ec) : thread;
}

/* The thread of an execution context. */
static inline uint64_t context_thread(struct access *access, uint64_t ec)
{
	if (layout_has(access->layout, F_ec_thread_ptr))
		return access_member(access, ec, F_ec_thread_ptr);
	return value_data(access, access_member(access, ec, F_thread_self));
}

/* Whether the execution context at `ec` belongs to the thread at `thread` (rb_thread_t). */
static inline bool context_is_of(struct access *access, uint64_t ec, uint64_t thread)
{
	if (!layout_has(access->layout, F_thread_ec) && ec == thread)
		return true;
	return context_thread(access, ec) == thread;
}

/*
 * The rb_fiber_t that a member of a thread or fiber refers to; 0 if the member refers to no fiber. Up to Ruby 2.1 the
 * member contains the address of a Fiber object, which leads to the rb_fiber_t.
 */
static inline uint64_t context_fiber(struct access *access, uint64_t object, enum layout_member_id id)
{
	uint64_t word = access_member(access, object, id);

	if (!layout_has(access->layout, F_fiber_next_fiber) || access->failed)
		return word;
	return value_is_object(word) ? value_data(access, word) : 0;
}

/*
 * How many bytes at the start of an execution context must be compared to detect a change of its stack. Up to Ruby 2.4
 * an execution context is a whole rb_thread_t, and only its first part is compared. Some members after this part change
 * although the stack does not change, for example a counter of the thread's running time.
 */
static inline uint64_t context_size(const struct layout *layout)
{
	const struct context_members members = context_members(layout);
	const enum layout_member_id ids[] = {members.vm_stack, members.vm_stack_size, members.cfp};
	uint64_t end = 0;

	if (layout_has(layout, F_thread_ec))
		return (uint64_t)layout->sizes[S_ec].value;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		const struct layout_member *member = &layout->members[ids[i]];

		if (end < (uint64_t)member->offset + member->size)
			end = (uint64_t)member->offset + member->size;
	}
	return end;
}

#endif
