/*
 * Execution contexts: what has a VM stack. Since 2.5 a thread points to the one that it runs in
 * (rb_execution_context_t), which is part of a fiber; until 2.4 a thread is one itself, and a fiber that it has left
 * has a copy of it, of which only what belongs to the stack, and to whom, is right (vm_core.h, rb_thread_t; cont.c,
 * cont_save_thread, cont_init, 1.9.3 to 2.4.10).
 */
#ifndef RBDUMP_CONTEXT_H
#define RBDUMP_CONTEXT_H

#include "decode/value.h"
#include "vm/access.h"

/* Where an execution context has what, and where a fiber has one. */
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

/* The execution context that a thread (rb_thread_t) runs in. */
static inline uint64_t context_of_thread(struct access *access, uint64_t thread)
{
	return layout_has(access->layout, F_thread_ec) ? access_member(access, thread, F_thread_ec) : thread;
}

/* The thread that an execution context says it is of: one that is not the thread itself. */
static inline uint64_t context_thread(struct access *access, uint64_t ec)
{
	if (layout_has(access->layout, F_ec_thread_ptr))
		return access_member(access, ec, F_ec_thread_ptr);
	return value_data(access, access_member(access, ec, F_thread_self));
}

/* Whether it is of a thread. */
static inline bool context_is_of(struct access *access, uint64_t ec, uint64_t thread)
{
	if (!layout_has(access->layout, F_thread_ec) && ec == thread)
		return true;
	return context_thread(access, ec) == thread;
}

/* The rb_fiber_t that a member of a thread or fiber leads to, until 2.1 by an object, or nil. 0 if none. */
static inline uint64_t context_fiber(struct access *access, uint64_t object, enum layout_member_id id)
{
	uint64_t word = access_member(access, object, id);

	if (!layout_has(access->layout, F_fiber_next_fiber) || access->failed)
		return word;
	return value_is_object(word) ? value_data(access, word) : 0;
}

/*
 * How many bytes of an execution context tell of a change that it is in another place. A thread that is one itself has
 * much more, which also changes while its stack stands still (a timer counts how long it runs).
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
