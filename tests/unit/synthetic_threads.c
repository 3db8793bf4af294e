#include "synthetic_threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

int set_up_threads(void **state)
{
	struct synthetic *s;

	synthetic_set_up(state);
	s = *state;
	s->ruby.vm = synthetic_struct(s, S_vm);
	return 0;
}

uint64_t next_of(const struct synthetic *s, uint64_t node)
{
	return node + s->layout->members[F_list_node_next].offset;
}

void link_ring(struct synthetic *s, uint64_t object, enum layout_member_id head, enum layout_member_id node,
	       const uint64_t *objects, size_t count)
{
	uint64_t at = object + s->layout->members[head].offset;
	const uint64_t head_node = at - s->layout->members[F_list_node_next].offset;

	for (size_t i = 0; i < count; i++) {
		uint64_t link = objects[i] + s->layout->members[node].offset;

		synthetic_put_word(s, at, link);
		at = next_of(s, link);
	}
	synthetic_put_word(s, at, head_node);
}

uint64_t new_thread(struct synthetic *s, enum layout_enumerator_id status)
{
	uint64_t thread = synthetic_struct(s, S_thread);

	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, status));
	synthetic_set(s, thread, F_thread_ec, synthetic_struct(s, S_ec));
	return thread;
}

uint64_t new_ractor(struct synthetic *s, uint64_t id, const uint64_t *threads, size_t count)
{
	uint64_t ractor = synthetic_struct(s, S_ractor);

	synthetic_set(s, ractor, F_ractor_id, id);
	link_ring(s, ractor, F_ractor_threads, F_thread_node, threads, count);
	link_ring(s, ractor, F_ractor_gvl_queue, F_thread_gvl_node, NULL, 0);
	return ractor;
}

uint64_t one_ractor(struct synthetic *s, const uint64_t *threads, size_t count)
{
	uint64_t ractor = new_ractor(s, 1, threads, count);

	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, &ractor, 1);
	return ractor;
}

struct ruby_threads list_threads(struct synthetic *s)
{
	struct ruby_threads threads;

	assert_true(threads_list(&s->ruby, &threads));
	return threads;
}

void assert_threads(struct synthetic *s, const uint64_t *expected, size_t count, enum list_missing missing)
{
	struct ruby_threads threads = list_threads(s);

	assert_int_equal(threads.missing, missing);
	assert_int_equal(threads.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(threads.threads[i].address, expected[i]);
	threads_clear(&threads);
	assert_null(threads.threads);
}
