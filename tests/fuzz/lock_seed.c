#include "lock_seed.h"

#include <string.h>

#include "locks.h"

/* A T_DATA object with a type of that name; `data` is its struct. */
static uint64_t new_data(struct writer *w, const char *name, uint64_t data)
{
	const struct layout_number *typed = &w->layout->enumerators[E_RUBY_TYPED_FL_IS_TYPED_DATA];
	uint64_t flags = enumerator(w, E_RUBY_T_DATA) | (typed->present ? (uint64_t)typed->value : 0);
	uint64_t object = new_object(w, S_typed_data, flags), type = allocate(w, size_of(w, S_data_type));
	uint64_t text = allocate(w, strlen(name) + 1);

	memcpy(bytes_at(w, text, strlen(name) + 1), name, strlen(name) + 1);
	set_member(w, type, F_data_type_name, text);
	set_member(w, object, F_typed_data_type, type);
	set_member(w, object, F_typed_data_data, data);
	if (!typed->present)
		set_member_if_there(w, object, F_typed_data_typed_flag, 1);
	return object;
}

static uint64_t size_or(const struct writer *w, enum layout_struct_id id, uint64_t otherwise)
{
	return w->layout->sizes[id].present ? size_of(w, id) : otherwise;
}

/* A Mutex that a thread has, and another thread waits for. Gives the address of its struct. */
static uint64_t new_mutex(struct writer *w, uint64_t index_of_owner, uint64_t owner, uint64_t waiter)
{
	uint64_t mutex = allocate(w, size_or(w, S_mutex, 64)), node;

	if (layout_has(w->layout, F_mutex_ec_serial))
		set_member(w, mutex, F_mutex_ec_serial, LOCK_SERIALS + index_of_owner);
	else if (layout_has(w->layout, F_mutex_fiber))
		set_member(w, mutex, F_mutex_fiber, LOCK_FIBERS + index_of_owner);
	else
		set_member_if_there(w, mutex, F_mutex_th, owner);
	set_member_if_there(w, mutex, F_mutex_nr_waiting, 1);
	set_member_if_there(w, owner, F_thread_keeping_mutexes, mutex);
	if (!layout_has(w->layout, F_mutex_waitq) || !layout_has(w->layout, F_waiter_node))
		return mutex;
	/* A ring of the head and one who waits. */
	node = allocate(w, size_of(w, S_waiter)) + w->layout->members[F_waiter_node].offset;
	set_member(w, node - w->layout->members[F_waiter_node].offset, F_waiter_th, waiter);
	set_member(w, node, F_list_node_next, mutex + w->layout->members[F_mutex_waitq].offset);
	set_member(w, mutex, F_mutex_waitq, node);
	return mutex;
}

static uint64_t new_queue(struct writer *w, enum layout_struct_id id)
{
	uint64_t queue = allocate(w, size_or(w, id, size_or(w, S_queue, 64)) + size_or(w, S_queue, 64));

	if (layout_has(w->layout, F_queue_len))
		set_member(w, queue, F_queue_len, 2);
	else if (layout_has(w->layout, F_queue_que))
		set_member(w, queue, F_queue_que, embedded_pair(w, 1, 3));
	if (id == S_szqueue)
		set_member_if_there(w, queue, F_szqueue_max, 2);
	return queue;
}

/* ext/monitor/monitor.c: three words, the last of which is the Mutex; or as the layout has it. */
static uint64_t new_monitor(struct writer *w, uint64_t mutex)
{
	uint64_t monitor = allocate(w, size_or(w, S_monitor, 24));

	if (layout_has(w->layout, F_monitor_mutex))
		set_member(w, monitor, F_monitor_mutex, mutex);
	else
		put_word(w, monitor + 16, mutex);
	return monitor;
}

static void put_threads(struct writer *w)
{
	const uint64_t second = locks_thread(w->layout), context = locks_context(w->layout);

	/* Up to 2.4, a thread is its own execution context. */
	set_member_if_there(w, second, F_thread_ec, context);
	set_member_if_there(w, context, F_ec_serial, LOCK_SERIALS + 1);
	set_member_if_there(w, w->ec, F_ec_serial, LOCK_SERIALS);
	if (layout_has(w->layout, F_thread_join_list) && layout_has(w->layout, F_joiner_thread)) {
		uint64_t joiner = allocate(w, size_of(w, S_joiner));

		set_member(w, joiner, F_joiner_thread, IMAGE_THREAD);
		set_member(w, second, F_thread_join_list, joiner);
	}
}

static void put_frame(struct writer *w, enum lock_frame frame, uint64_t self)
{
	set_member_if_there(w, locks_frame(w->layout, frame), F_cfp_self, self);
}

void reserve_locks(struct writer *w)
{
	allocate(w, LOCK_FRAMES * size_of(w, S_cfp));
	allocate(w, size_of(w, S_thread));
	allocate(w, size_of(w, S_ec));
	if (w->heap.next != locks_context(w->layout) + (size_of(w, S_ec) + 7) / 8 * 8)
		end_by_abort("the threads that wait are not where locks.h says");
}

void put_locks(struct writer *w)
{
	const uint64_t second = locks_thread(w->layout);
	uint64_t first_has, second_has, second_mutex;

	if (!w->layout->enumerators[E_RUBY_T_DATA].present || !layout_has(w->layout, F_data_type_name))
		return;
	put_threads(w);
	first_has = new_mutex(w, 0, IMAGE_THREAD, second);
	second_has = new_mutex(w, 1, second, IMAGE_THREAD);
	second_mutex = new_data(w, "mutex", second_has);
	put_frame(w, LOCK_FIRST, second_mutex);
	put_frame(w, LOCK_SECOND, new_data(w, "mutex", first_has));
	put_frame(w, LOCK_MONITOR, new_data(w, "monitor", new_monitor(w, second_mutex)));
	put_frame(w, LOCK_CONDITION, new_data(w, "condvar", allocate(w, 64)));
	put_frame(w, LOCK_QUEUE, new_data(w, "queue", new_queue(w, S_queue)));
	put_frame(w, LOCK_SIZED_QUEUE, new_data(w, "sized_queue", new_queue(w, S_szqueue)));
	put_frame(w, LOCK_JOIN, new_data(w, "VM/thread", second));
}
