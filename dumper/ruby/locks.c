#include "ruby/locks.h"

#include "ruby/value.h"

/* vm_core.h, PENDING_INTERRUPT_MASK and TRAP_INTERRUPT_MASK, v2_0_0_0 to v4.0.5 and head; 1.9.3 has the first. */
#define WAKING_INTERRUPTS 0x0au

/* ext/monitor/monitor.c, struct rb_monitor, v2_7_0 to v4.0.5: so many words, one of which is the Mutex. */
#define MONITOR_WORDS 3u

bool locks_are_known(const struct layout *layout)
{
	return layout_has(layout, F_mutex_ec_serial) || layout_has(layout, F_mutex_fiber) ||
	       layout_has(layout, F_mutex_th);
}

bool locks_owner(const struct locks *locks, uint64_t mutex, struct lock_owner *ret)
{
	const struct layout *layout = locks->ruby->layout;
	struct access access = ruby_access(locks->ruby);

	*ret = (struct lock_owner){0};
	if (layout_has(layout, F_mutex_ec_serial))
		ret->serial = access_member(&access, mutex, F_mutex_ec_serial);
	else if (layout_has(layout, F_mutex_fiber))
		ret->fiber = access_member(&access, mutex, F_mutex_fiber);
	else
		ret->thread = access_member(&access, mutex, F_mutex_th);
	return !access.failed;
}

bool locks_mutex_has_waiter(struct locks *locks, uint64_t mutex, uint64_t thread, uint64_t fiber)
{
	const struct layout *layout = locks->ruby->layout;
	struct access access = ruby_access(locks->ruby);
	uint64_t head, node;

	if (layout_has(layout, F_mutex_nr_waiting))
		return access_signed(&access, mutex, F_mutex_nr_waiting) > 0 && !access.failed;
	if (!layout_has(layout, F_mutex_waitq) || !layout_has(layout, F_waiter_node) ||
	    !layout_has(layout, F_waiter_th) || !layout_has(layout, F_list_node_next) ||
	    (fiber != 0 && !layout_has(layout, F_waiter_fiber)))
		return false;
	/* The list is a ring through its head, which is no waiter. */
	head = access_address(&access, mutex, F_mutex_waitq);
	for (node = access_member(&access, mutex, F_mutex_waitq); !access.failed && node != head && locks_step(locks);
	     node = access_member(&access, node, F_list_node_next)) {
		const uint64_t waiter = node - layout->members[F_waiter_node].offset;

		if (access_member(&access, waiter, F_waiter_th) == thread &&
		    (fiber == 0 || access_member(&access, waiter, F_waiter_fiber) == fiber))
			return !access.failed;
	}
	return false;
}

bool locks_is_joined_by(struct locks *locks, uint64_t thread, uint64_t waiter)
{
	const struct layout *layout = locks->ruby->layout;
	struct access access = ruby_access(locks->ruby);
	uint64_t joiner;

	if (!layout_has(layout, F_thread_join_list) || !layout_has(layout, F_joiner_next) ||
	    !layout_has(layout, F_joiner_thread))
		return false;
	for (joiner = access_member(&access, thread, F_thread_join_list);
	     !access.failed && joiner != 0 && locks_step(locks); joiner = access_member(&access, joiner, F_joiner_next))
		if (access_member(&access, joiner, F_joiner_thread) == waiter)
			return !access.failed;
	return false;
}

size_t locks_held(struct locks *locks, uint64_t thread, uint64_t *mutexes, size_t max)
{
	const struct layout *layout = locks->ruby->layout;
	struct access access = ruby_access(locks->ruby);
	size_t count = 0;
	uint64_t mutex;

	if (!layout_has(layout, F_thread_keeping_mutexes) || !layout_has(layout, F_mutex_next))
		return 0;
	mutex = access_member(&access, thread, F_thread_keeping_mutexes);
	while (!access.failed && mutex != 0 && count < max && locks_step(locks)) {
		mutexes[count++] = mutex;
		mutex = access_member(&access, mutex, F_mutex_next);
	}
	return count;
}

bool locks_is_woken(const struct locks *locks, uint64_t thread, uint64_t ec)
{
	const struct layout *layout = locks->ruby->layout;
	struct access access = ruby_access(locks->ruby);
	uint64_t flag, mask = 0;

	if (layout_has(layout, F_ec_interrupt_flag)) {
		flag = access_member(&access, ec, F_ec_interrupt_flag);
		if (layout_has(layout, F_ec_interrupt_mask))
			mask = access_member(&access, ec, F_ec_interrupt_mask);
	} else {
		flag = access_member(&access, thread, F_thread_interrupt_flag);
		if (layout_has(layout, F_thread_interrupt_mask))
			mask = access_member(&access, thread, F_thread_interrupt_mask);
	}
	return access.failed || (flag & ~mask & WAKING_INTERRUPTS) != 0;
}

uint64_t locks_monitor_mutex(const struct locks *locks, const struct typed *typed)
{
	const struct layout *layout = locks->ruby->layout;
	struct access access = ruby_access(locks->ruby);
	struct typed mutex;

	if (!typed_is(locks->ruby, typed, "monitor"))
		return 0;
	if (layout_has(layout, F_monitor_mutex)) {
		const uint64_t value = access_member(&access, typed->data, F_monitor_mutex);

		return access.failed ? 0 : value;
	}
	/* It is a struct of an extension, which the layout does not have. Its other words are a number and the owner. */
	for (uint64_t i = MONITOR_WORDS; i-- > 0;) {
		const uint64_t value = access_word(&access, typed->data + i * 8);

		if (!access.failed && typed_read(locks->ruby, value, &mutex) && typed_is(locks->ruby, &mutex, "mutex"))
			return value;
	}
	return 0;
}

bool locks_queue_length(const struct locks *locks, const struct typed *typed, bool sized, uint64_t *length,
			uint64_t *max)
{
	const struct layout *layout = locks->ruby->layout;
	struct access access = ruby_access(locks->ruby);
	uint64_t elements;

	*length = *max = 0;
	/* A SizedQueue begins with a Queue. */
	if (layout_has(layout, F_queue_len))
		*length = access_member(&access, typed->data, F_queue_len);
	else if (layout_has(layout, F_queue_que))
		*length = value_array(&access, access_member(&access, typed->data, F_queue_que), &elements);
	else
		return false;
	if (sized && !layout_has(layout, F_szqueue_max))
		return false;
	if (sized)
		*max = access_member(&access, typed->data, F_szqueue_max);
	return !access.failed && *length <= INT64_MAX && *max <= INT64_MAX;
}

int64_t locks_child(struct locks *locks, uint64_t ec)
{
	const struct layout *layout = locks->ruby->layout;
	struct access access = ruby_access(locks->ruby);
	uint64_t head, node;

	if (ec == 0 || !layout_has(layout, F_vm_waiting_pids) || !layout_has(layout, F_waitpid_node) ||
	    !layout_has(layout, F_waitpid_ec) || !layout_has(layout, F_waitpid_pid) ||
	    !layout_has(layout, F_list_node_next))
		return 0;
	head = access_address(&access, locks->ruby->vm, F_vm_waiting_pids);
	for (node = access_member(&access, locks->ruby->vm, F_vm_waiting_pids);
	     !access.failed && node != head && locks_step(locks);
	     node = access_member(&access, node, F_list_node_next)) {
		const uint64_t state = node - layout->members[F_waitpid_node].offset;

		if (access_member(&access, state, F_waitpid_ec) == ec) {
			const int64_t pid = access_signed(&access, state, F_waitpid_pid);

			return access.failed ? 0 : pid;
		}
	}
	return 0;
}
