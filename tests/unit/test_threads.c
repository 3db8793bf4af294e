/* Ractors and threads: rings of lists whole and broken, states, the queue for the GVL, native threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ruby/thread_words.h"
#include "ruby/threads.h"
#include "synthetic.h"

#define NOWHERE (SYNTHETIC_BASE + SYNTHETIC_SIZE)

/* More than what is bounded takes, sanitized and on a busy machine; what is not takes many times that. */
#define MUCH_NS 2000000000L

/* A Ruby with a VM; tests add ractors and threads to it. */
static int set_up(void **state)
{
	struct synthetic *s;

	synthetic_set_up(state);
	s = *state;
	s->ruby.vm = synthetic_struct(s, S_vm);
	return 0;
}

static uint64_t next_of(const struct synthetic *s, uint64_t node)
{
	return node + s->layout->members[F_list_node_next].offset;
}

/* Links objects through `node` to a ring from the head, of which `head` is the member `next`. */
static void link_ring(struct synthetic *s, uint64_t object, enum layout_member_id head, enum layout_member_id node,
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

/* Where the pointer to the next thread is, in a thread. */
static uint64_t link_of(const struct synthetic *s, uint64_t thread)
{
	return next_of(s, thread + s->layout->members[F_thread_node].offset);
}

static uint64_t new_thread(struct synthetic *s, enum layout_enumerator_id status)
{
	uint64_t thread = synthetic_struct(s, S_thread);

	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, status));
	synthetic_set(s, thread, F_thread_ec, synthetic_struct(s, S_ec));
	return thread;
}

static uint64_t new_ractor(struct synthetic *s, uint64_t id, const uint64_t *threads, size_t count)
{
	uint64_t ractor = synthetic_struct(s, S_ractor);

	synthetic_set(s, ractor, F_ractor_id, id);
	link_ring(s, ractor, F_ractor_threads, F_thread_node, threads, count);
	link_ring(s, ractor, F_ractor_gvl_queue, F_thread_gvl_node, NULL, 0);
	return ractor;
}

/* One ractor, number 1, with these threads. */
static uint64_t one_ractor(struct synthetic *s, const uint64_t *threads, size_t count)
{
	uint64_t ractor = new_ractor(s, 1, threads, count);

	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, &ractor, 1);
	return ractor;
}

static struct ruby_threads list(struct synthetic *s)
{
	struct ruby_threads threads;

	assert_true(threads_list(&s->ruby, &threads));
	return threads;
}

/* The threads are these, in this order; `missing` tells why there may be more. */
static void assert_listed(struct synthetic *s, const uint64_t *expected, size_t count, enum list_missing missing)
{
	struct ruby_threads threads = list(s);

	assert_int_equal(threads.missing, missing);
	assert_int_equal(threads.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(threads.threads[i].address, expected[i]);
	threads_clear(&threads);
	assert_null(threads.threads);
}

static enum trace_state state_of(struct synthetic *s, uint64_t thread)
{
	struct ruby_threads threads = list(s);
	enum trace_state found;

	for (size_t i = 0; i < threads.count; i++) {
		if (threads.threads[i].address != thread)
			continue;
		found = threads.threads[i].state;
		threads_clear(&threads);
		return found;
	}
	fail_msg("the thread is not listed");
	return STATE_UNKNOWN;
}

static void test_ractors(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[3], ractors[2];
	struct ruby_threads listed;

	for (size_t i = 0; i < 3; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	ractors[0] = new_ractor(s, 1, threads, 2);
	ractors[1] = new_ractor(s, 7, threads + 2, 1);
	/* Each has a GVL of its own. */
	synthetic_set(s, ractors[0], F_ractor_sched_running, threads[1]);
	synthetic_set(s, ractors[1], F_ractor_sched_running, threads[2]);
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	synthetic_set(s, s->ruby.vm, F_vm_main_thread, threads[0]);
	assert_listed(s, threads, 3, LIST_COMPLETE);
	listed = list(s);
	assert_true(listed.threads[0].main);
	assert_false(listed.threads[1].main);
	assert_int_equal(listed.threads[0].ractor, 1);
	assert_int_equal(listed.threads[1].ractor, 1);
	assert_int_equal(listed.threads[2].ractor, 7);
	assert_int_equal(listed.threads[0].state, STATE_WAITING_GVL);
	assert_int_equal(listed.threads[1].state, STATE_RUNNING);
	assert_int_equal(listed.threads[2].state, STATE_RUNNING);
	threads_clear(&listed);
	synthetic_without(s, F_ractor_id);
	listed = list(s);
	assert_int_equal(listed.threads[2].ractor, 1);
	threads_clear(&listed);
}

/* Until 2.7 the VM itself has the list and the GVL. */
static void test_without_ractors(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[3];

	for (size_t i = 0; i < 3; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	link_ring(s, s->ruby.vm, F_vm_living_threads, F_thread_node, threads, 3);
	link_ring(s, s->ruby.vm, F_vm_gvl_queue, F_thread_gvl_node, threads + 1, 1);
	synthetic_set(s, s->ruby.vm, F_vm_gvl_owner, threads[2]);
	synthetic_without(s, F_vm_ractors);
	assert_listed(s, threads, 3, LIST_COMPLETE);
	synthetic_set(s, threads[1], F_thread_status, synthetic_enum(s, E_THREAD_STOPPED));
	assert_int_equal(state_of(s, threads[0]), STATE_WAITING_GVL);
	assert_int_equal(state_of(s, threads[1]), STATE_WAITING_GVL);
	assert_int_equal(state_of(s, threads[2]), STATE_RUNNING);
	/* Until 2.5 it notes who ran last, and whether anybody still does. */
	synthetic_without(s, F_vm_gvl_owner);
	synthetic_set(s, s->ruby.vm, F_vm_running_thread, threads[0]);
	assert_int_equal(state_of(s, threads[0]), STATE_WAITING_GVL);
	synthetic_set(s, s->ruby.vm, F_vm_gvl_acquired, 1);
	assert_int_equal(state_of(s, threads[0]), STATE_RUNNING);
	synthetic_without(s, F_vm_running_thread);
	assert_int_equal(state_of(s, threads[0]), STATE_UNKNOWN);
}

static void test_no_threads(void **state)
{
	struct synthetic *s = *state;

	one_ractor(s, NULL, 0);
	assert_listed(s, NULL, 0, LIST_COMPLETE);
}

static void test_list_broken_off(void **state)
{
	struct synthetic *s = *state;
	struct ruby_threads listed;
	uint64_t threads[3];

	for (size_t i = 0; i < 3; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	one_ractor(s, threads, 3);
	assert_listed(s, threads, 3, LIST_COMPLETE);
	synthetic_put_word(s, link_of(s, threads[1]), 0);
	listed = list(s);
	assert_int_equal(listed.missing, LIST_BROKEN);
	assert_int_equal(listed.threads[0].address, threads[0]);
	assert_int_equal(listed.threads[1].address, threads[1]);
	threads_clear(&listed);
	synthetic_put_word(s, link_of(s, threads[1]), UINT64_MAX - 7);
	listed = list(s);
	assert_int_equal(listed.missing, LIST_BROKEN);
	assert_int_equal(listed.threads[1].address, threads[1]);
	threads_clear(&listed);
}

static void test_heads_that_cannot_be_read(void **state)
{
	struct synthetic *s = *state;
	struct ruby_threads threads;

	s->ruby.vm = NOWHERE;
	threads = list(s);
	assert_int_equal(threads.missing, LIST_BROKEN);
	assert_int_equal(threads.count, 0);
	threads_clear(&threads);
	synthetic_without(s, F_vm_ractors);
	threads = list(s);
	assert_int_equal(threads.missing, LIST_BROKEN);
	assert_int_equal(threads.count, 0);
	threads_clear(&threads);
}

/* A thread that unlinks itself while it is looked at can lead in a circle past the head. */
static void test_circles(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[40];

	for (size_t i = 0; i < 40; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	for (size_t length = 1; length <= 40; length += 13) {
		one_ractor(s, threads, 40);
		synthetic_put_word(s, link_of(s, threads[39]),
				   threads[40 - length] + s->layout->members[F_thread_node].offset);
		assert_listed(s, threads, 40, LIST_BROKEN);
	}
}

/* A list that leads into another's: what follows is in both, and is listed once. */
static void test_lists_that_run_together(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[4], ractors[2];
	struct ruby_threads listed;

	for (size_t i = 0; i < 4; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	ractors[0] = new_ractor(s, 1, threads, 2);
	ractors[1] = new_ractor(s, 2, threads + 2, 2);
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	synthetic_put_word(s, link_of(s, threads[1]), threads[3] + s->layout->members[F_thread_node].offset);
	listed = list(s);
	assert_int_equal(listed.missing, LIST_BROKEN);
	for (size_t i = 0; i < listed.count; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(listed.threads[i].address, listed.threads[j].address);
	assert_int_equal(listed.threads[0].address, threads[0]);
	assert_int_equal(listed.threads[1].address, threads[1]);
	assert_int_equal(listed.threads[2].address, threads[3]);
	threads_clear(&listed);
	/* So with ractors. */
	ractors[0] = new_ractor(s, 1, threads, 2);
	ractors[1] = new_ractor(s, 2, threads + 2, 2);
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	synthetic_put_word(s, next_of(s, ractors[1] + s->layout->members[F_ractor_node].offset),
			   ractors[0] + s->layout->members[F_ractor_node].offset);
	assert_listed(s, threads, 4, LIST_BROKEN);
}

static void test_too_many(void **state)
{
	struct synthetic *s = *state;
	struct ruby_threads listed;
	uint64_t *threads, ractors[2];

	threads = test_calloc(THREADS_MAX + 1, sizeof(*threads));
	for (size_t i = 0; i <= THREADS_MAX; i++)
		threads[i] = synthetic_struct(s, S_thread);
	one_ractor(s, threads, THREADS_MAX);
	listed = list(s);
	assert_int_equal(listed.missing, LIST_COMPLETE);
	assert_int_equal(listed.count, THREADS_MAX);
	threads_clear(&listed);
	one_ractor(s, threads, THREADS_MAX + 1);
	listed = list(s);
	assert_int_equal(listed.missing, LIST_TOO_LONG);
	assert_int_equal(listed.count, THREADS_MAX);
	threads_clear(&listed);
	/* In all ractors together. */
	ractors[0] = new_ractor(s, 1, threads, THREADS_MAX / 2);
	ractors[1] = new_ractor(s, 2, threads + THREADS_MAX / 2, THREADS_MAX / 2 + 1);
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	listed = list(s);
	assert_int_equal(listed.missing, LIST_TOO_LONG);
	assert_int_equal(listed.count, THREADS_MAX);
	threads_clear(&listed);
	/* More than that in a circle is a circle. */
	one_ractor(s, threads, THREADS_MAX - 1);
	synthetic_put_word(s, link_of(s, threads[THREADS_MAX - 2]),
			   threads[5] + s->layout->members[F_thread_node].offset);
	assert_listed(s, threads, THREADS_MAX - 1, LIST_BROKEN);
	test_free(threads);
}

/* However long the queues are, and however many ractors have the same: each is gone through once at most. */
static void test_long_queues(void **state)
{
	enum { RACTORS = 2000 };
	struct synthetic *s = *state;
	uint64_t *threads = test_calloc(THREADS_MAX, sizeof(*threads)), ractors[RACTORS];
	struct ruby_threads listed;
	struct timespec began;

	for (size_t i = 0; i < THREADS_MAX; i++)
		threads[i] = new_thread(s, E_THREAD_STOPPED);
	ractors[0] = new_ractor(s, 1, threads, THREADS_MAX);
	link_ring(s, ractors[0], F_ractor_gvl_queue, F_thread_gvl_node, threads, THREADS_MAX);
	for (size_t i = 1; i < RACTORS; i++) {
		ractors[i] = new_ractor(s, i + 1, NULL, 0);
		synthetic_set(s, ractors[i], F_ractor_gvl_queue,
			      threads[0] + s->layout->members[F_thread_gvl_node].offset);
	}
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, RACTORS);
	/* All is copied. */
	listed = list(s);
	threads_clear(&listed);
	clock_gettime(CLOCK_MONOTONIC, &began);
	listed = list(s);
	assert_true(elapsed_ns(&began) < MUCH_NS);
	assert_int_equal(listed.missing, LIST_COMPLETE);
	assert_int_equal(listed.count, THREADS_MAX);
	for (size_t i = 0; i < THREADS_MAX; i++)
		assert_int_equal(listed.threads[i].state, STATE_WAITING_GVL);
	threads_clear(&listed);
	/* Nor is the rest gone through when there is no room for more. */
	for (size_t i = 1; i < RACTORS; i++)
		synthetic_set(s, ractors[i], F_ractor_threads, threads[0] + s->layout->members[F_thread_node].offset);
	clock_gettime(CLOCK_MONOTONIC, &began);
	listed = list(s);
	assert_true(elapsed_ns(&began) < MUCH_NS);
	assert_int_equal(listed.missing, LIST_TOO_LONG);
	assert_int_equal(listed.count, THREADS_MAX);
	threads_clear(&listed);
	test_free(threads);
}

/* What was read in time is whole, and it is said that there may be more. */
static void test_out_of_time(void **state)
{
	enum { LONG = 8000 };
	struct synthetic *s = *state;
	uint64_t *threads = test_calloc(LONG, sizeof(*threads));
	struct ruby_threads listed;

	for (size_t i = 0; i < LONG; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	one_ractor(s, threads, LONG);
	memory_limit(s->ruby.memory, 1);
	assert_listed(s, threads, 0, LIST_OUT_OF_TIME);
	/* Longer each time, until it is enough. */
	for (long limit = 10000;; limit *= 2) {
		memory_limit(s->ruby.memory, limit);
		listed = list(s);
		for (size_t i = 0; i < listed.count; i++) {
			assert_int_equal(listed.threads[i].address, threads[i]);
			assert_int_equal(listed.threads[i].state, STATE_WAITING_GVL);
			assert_int_not_equal(listed.threads[i].ec, 0);
		}
		if (listed.missing == LIST_COMPLETE)
			break;
		assert_int_equal(listed.missing, LIST_OUT_OF_TIME);
		threads_clear(&listed);
	}
	assert_int_equal(listed.count, LONG);
	threads_clear(&listed);
	test_free(threads);
}

/* One thread more, less, or another makes another list. */
static void test_same(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[3];
	struct ruby_threads before, now;

	for (size_t i = 0; i < 3; i++)
		threads[i] = new_thread(s, E_THREAD_RUNNABLE);
	one_ractor(s, threads, 2);
	before = list(s);
	now = list(s);
	assert_true(threads_are_same(&before, &now));
	threads_clear(&now);
	one_ractor(s, threads, 3);
	now = list(s);
	assert_false(threads_are_same(&before, &now));
	threads_clear(&now);
	one_ractor(s, threads + 1, 2);
	now = list(s);
	assert_false(threads_are_same(&before, &now));
	threads_clear(&now);
	one_ractor(s, threads, 2);
	synthetic_put_word(s, link_of(s, threads[1]), threads[0] + s->layout->members[F_thread_node].offset);
	now = list(s);
	assert_int_equal(now.count, 2);
	assert_false(threads_are_same(&before, &now));
	threads_clear(&now);
	threads_clear(&before);
}

/* What is wrong in one ractor does not hide another. */
static void test_one_ractor_broken(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[2], ractors[2];
	struct ruby_threads listed;

	threads[0] = new_thread(s, E_THREAD_RUNNABLE);
	threads[1] = new_thread(s, E_THREAD_RUNNABLE);
	ractors[0] = new_ractor(s, 1, threads, 1);
	ractors[1] = new_ractor(s, 2, threads + 1, 1);
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	synthetic_put_word(s, link_of(s, threads[0]), threads[0] + s->layout->members[F_thread_node].offset);
	listed = list(s);
	assert_int_equal(listed.missing, LIST_BROKEN);
	assert_int_equal(listed.threads[listed.count - 1].address, threads[1]);
	assert_int_equal(listed.threads[listed.count - 1].ractor, 2);
	threads_clear(&listed);
	synthetic_set(s, s->ruby.vm, F_vm_ractors, NOWHERE);
	listed = list(s);
	assert_int_equal(listed.missing, LIST_BROKEN);
	assert_int_equal(listed.count, 0);
	threads_clear(&listed);
}

static void test_states(void **state)
{
	struct synthetic *s = *state;
	uint64_t thread = new_thread(s, E_THREAD_RUNNABLE), other = new_thread(s, E_THREAD_RUNNABLE);
	const uint64_t both[] = {thread, other};
	uint64_t ractor = one_ractor(s, both, 2);

	synthetic_set(s, ractor, F_ractor_sched_running, other);
	assert_int_equal(state_of(s, thread), STATE_WAITING_GVL);
	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, E_THREAD_STOPPED));
	assert_int_equal(state_of(s, thread), STATE_SLEEPING);
	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, E_THREAD_STOPPED_FOREVER));
	assert_int_equal(state_of(s, thread), STATE_SLEEPING_FOREVER);
	synthetic_set(s, thread, F_thread_blocking_region, 0x7ffc0010);
	assert_int_equal(state_of(s, thread), STATE_BLOCKED);
	/* It has just got the GVL, or is just giving it up. */
	synthetic_set(s, ractor, F_ractor_sched_running, thread);
	assert_int_equal(state_of(s, thread), STATE_RUNNING);
	assert_int_equal(state_of(s, other), STATE_WAITING_GVL);
	/* The last to run has ended. */
	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, E_THREAD_KILLED));
	assert_int_equal(state_of(s, thread), STATE_DEAD);
	/* Nobody has the GVL. */
	synthetic_set(s, ractor, F_ractor_sched_running, 0);
	assert_int_equal(state_of(s, other), STATE_WAITING_GVL);
}

/* 3.0 and 3.1 keep the owner elsewhere; without either, a thread that could run may be running. */
static void test_owners(void **state)
{
	struct synthetic *s = *state;
	uint64_t thread = new_thread(s, E_THREAD_RUNNABLE), ractor = one_ractor(s, &thread, 1);

	synthetic_set(s, ractor, F_ractor_gvl_owner, thread);
	assert_int_equal(state_of(s, thread), STATE_WAITING_GVL);
	synthetic_without(s, F_ractor_sched_running);
	assert_int_equal(state_of(s, thread), STATE_RUNNING);
	synthetic_without(s, F_ractor_gvl_owner);
	assert_int_equal(state_of(s, thread), STATE_UNKNOWN);
	synthetic_set(s, thread, F_thread_status, synthetic_enum(s, E_THREAD_STOPPED));
	assert_int_equal(state_of(s, thread), STATE_SLEEPING);
}

/* Who has been woken still looks asleep: the queue tells. */
static void test_queue(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[4], ractor;

	threads[0] = new_thread(s, E_THREAD_STOPPED_FOREVER);
	threads[1] = new_thread(s, E_THREAD_STOPPED);
	threads[2] = new_thread(s, E_THREAD_KILLED);
	threads[3] = new_thread(s, E_THREAD_STOPPED);
	ractor = one_ractor(s, threads, 4);
	link_ring(s, ractor, F_ractor_gvl_queue, F_thread_gvl_node, threads, 3);
	synthetic_set(s, ractor, F_ractor_sched_running, threads[1]);
	assert_listed(s, threads, 4, LIST_COMPLETE);
	assert_int_equal(state_of(s, threads[0]), STATE_WAITING_GVL);
	assert_int_equal(state_of(s, threads[1]), STATE_RUNNING);
	assert_int_equal(state_of(s, threads[2]), STATE_DEAD);
	assert_int_equal(state_of(s, threads[3]), STATE_SLEEPING);
	/* A broken queue costs no thread. */
	synthetic_put_word(s, next_of(s, threads[0] + s->layout->members[F_thread_gvl_node].offset), NOWHERE);
	assert_listed(s, threads, 4, LIST_COMPLETE);
	assert_int_equal(state_of(s, threads[0]), STATE_WAITING_GVL);
	synthetic_put_word(s, next_of(s, threads[0] + s->layout->members[F_thread_gvl_node].offset),
			   threads[0] + s->layout->members[F_thread_gvl_node].offset);
	assert_listed(s, threads, 4, LIST_COMPLETE);
	synthetic_without(s, F_thread_gvl_node);
	assert_int_equal(state_of(s, threads[0]), STATE_SLEEPING_FOREVER);
}

/* Where it is changed while it is read, each thread tells whether it is in it. */
static void test_queue_that_changes(void **state)
{
	struct synthetic *s = *state;
	uint64_t threads[4], ractor;

	for (size_t i = 0; i < 4; i++)
		threads[i] = new_thread(s, E_THREAD_STOPPED);
	ractor = one_ractor(s, threads, 4);
	link_ring(s, ractor, F_ractor_gvl_queue, F_thread_gvl_node, threads, 2);
	/* One that has left it points at itself, that of one that is being made is zero. */
	synthetic_put_word(s, next_of(s, threads[2] + s->layout->members[F_thread_gvl_node].offset),
			   threads[2] + s->layout->members[F_thread_gvl_node].offset);
	synthetic_put_word(s, next_of(s, threads[3] + s->layout->members[F_thread_gvl_node].offset), 0);
	synthetic_set(s, ractor, F_ractor_gvl_queue, NOWHERE);
	assert_listed(s, threads, 4, LIST_COMPLETE);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(state_of(s, threads[i]), i < 2 ? STATE_WAITING_GVL : STATE_SLEEPING);
}

static void test_native_threads(void **state)
{
	struct synthetic *s = *state;
	uint64_t thread = new_thread(s, E_THREAD_RUNNABLE), native = synthetic_struct(s, S_nt);
	struct ruby_threads listed;

	one_ractor(s, &thread, 1);
	synthetic_set(s, thread, F_thread_name, 0x7788);
	synthetic_set(s, thread, F_thread_tid, 31);
	synthetic_set(s, thread, F_thread_thread_id, 0x7f31);
	synthetic_set(s, native, F_nt_tid, 32);
	synthetic_set(s, native, F_nt_thread_id, 0x7f32);
	/* 3.1: in the thread itself. */
	listed = list(s);
	assert_int_equal(listed.threads[0].tid, 31);
	assert_int_equal(listed.threads[0].pthread, 0x7f31);
	assert_int_equal(listed.threads[0].name, 0x7788);
	threads_clear(&listed);
	/* 3.2 and later: in the native thread. */
	synthetic_set(s, thread, F_thread_nt, native);
	listed = list(s);
	assert_int_equal(listed.threads[0].tid, 32);
	assert_int_equal(listed.threads[0].pthread, 0x7f32);
	threads_clear(&listed);
	/* M:N: a thread that does not run has none. */
	synthetic_set(s, thread, F_thread_nt, 0);
	synthetic_without(s, F_thread_tid);
	synthetic_without(s, F_thread_thread_id);
	synthetic_without(s, F_thread_name);
	listed = list(s);
	assert_int_equal(listed.count, 1);
	assert_int_equal(listed.threads[0].tid, 0);
	assert_int_equal(listed.threads[0].pthread, 0);
	assert_int_equal(listed.threads[0].name, 0);
	assert_int_not_equal(listed.threads[0].ec, 0);
	threads_clear(&listed);
	synthetic_set(s, thread, F_thread_nt, NOWHERE);
	listed = list(s);
	assert_int_equal(listed.threads[0].tid, 0);
	assert_int_equal(listed.threads[0].pthread, 0);
	threads_clear(&listed);
}

static void test_fibers(void **state)
{
	static const struct {
		enum layout_enumerator_id status;
		const char *name;
	} statuses[] = {
	    {E_FIBER_CREATED, "created"},
	    {E_FIBER_RESUMED, "resumed"},
	    {E_FIBER_SUSPENDED, "suspended"},
	    {E_FIBER_TERMINATED, "terminated"},
	};
	struct synthetic *s = *state;
	uint64_t thread = new_thread(s, E_THREAD_RUNNABLE), fiber = synthetic_struct(s, S_fiber);
	uint64_t ec = synthetic_struct(s, S_ec);
	struct ruby_threads listed;

	one_ractor(s, &thread, 1);
	synthetic_set(s, thread, F_thread_ec, ec);
	listed = list(s);
	assert_int_equal(listed.threads[0].ec, ec);
	assert_int_equal(listed.threads[0].fiber, 0);
	assert_null(listed.threads[0].fiber_state);
	threads_clear(&listed);
	synthetic_set(s, ec, F_ec_fiber_ptr, fiber);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		synthetic_set(s, fiber, F_fiber_status, synthetic_enum(s, statuses[i].status));
		listed = list(s);
		assert_int_equal(listed.threads[0].fiber, fiber);
		assert_string_equal(listed.threads[0].fiber_state, statuses[i].name);
		threads_clear(&listed);
	}
	synthetic_without_enumerator(s, E_FIBER_TERMINATED);
	listed = list(s);
	assert_null(listed.threads[0].fiber_state);
	threads_clear(&listed);
	synthetic_set(s, ec, F_ec_fiber_ptr, NOWHERE);
	listed = list(s);
	assert_int_equal(listed.threads[0].fiber, NOWHERE);
	assert_null(listed.threads[0].fiber_state);
	threads_clear(&listed);
}

static void test_collection(void **state)
{
	struct synthetic *s = *state;
	uint64_t objspace = synthetic_struct(s, S_objspace);
	bool known;

	synthetic_set(s, s->ruby.vm, F_vm_objspace, objspace);
	assert_false(threads_gc_running(&s->ruby, &known));
	assert_true(known);
	synthetic_set(s, objspace, F_objspace_during_gc, 1);
	assert_true(threads_gc_running(&s->ruby, &known));
	assert_true(known);
	synthetic_set(s, s->ruby.vm, F_vm_objspace, NOWHERE);
	assert_false(threads_gc_running(&s->ruby, &known));
	assert_false(known);
	synthetic_set(s, s->ruby.vm, F_vm_objspace, objspace);
	synthetic_without(s, F_objspace_during_gc);
	assert_false(threads_gc_running(&s->ruby, &known));
	assert_false(known);
}

/* Whether some words are the same in a copy that is made now. */
static bool words_are(struct synthetic *s, const struct thread_words *words)
{
	struct access access = ruby_access(&s->ruby);
	uint8_t bytes[THREAD_WORDS_MAX * MEMORY_PAGE];
	size_t length = 0;

	for (size_t i = 0; i < words->nr_spans; i++) {
		const struct thread_span *span = &words->spans[i];

		assert_int_equal(span->address / MEMORY_PAGE, (span->address + span->length - 1) / MEMORY_PAGE);
		assert_true(access_bytes(&access, span->address, bytes + length, span->length));
		length += span->length;
	}
	return thread_words_are(words, bytes);
}

static bool words_of(struct synthetic *s, struct thread_words *ret)
{
	struct ruby_threads threads = list(s);
	bool found = thread_words_of(&s->ruby, &threads, ret);

	threads_clear(&threads);
	return found;
}

/* As long as they are the same, so is the list, and who has the GVL. */
static void test_words(void **state)
{
	struct synthetic *s = *state;
	const uint64_t threads[] = {new_thread(s, E_THREAD_STOPPED_FOREVER), new_thread(s, E_THREAD_RUNNABLE),
				    new_thread(s, E_THREAD_STOPPED), new_thread(s, E_THREAD_RUNNABLE)};
	uint64_t ractor = one_ractor(s, threads, 3);
	const enum layout_member_id owner = F_ractor_sched_running;
	const uint64_t queued = threads[0] + s->layout->members[F_thread_gvl_node].offset;
	struct thread_words words;

	assert_false(words_of(s, &words)); /* none runs */
	synthetic_set(s, ractor, owner, threads[1]);
	assert_true(words_of(s, &words));
	assert_true(words_are(s, &words));
	assert_true(words.nr_spans < words.count);
	synthetic_set(s, threads[2], F_thread_status, synthetic_enum(s, E_THREAD_STOPPED_FOREVER)); /* of no interest */
	assert_true(words_are(s, &words));
	/* Another one runs, or none. */
	synthetic_set(s, ractor, owner, threads[2]);
	assert_false(words_are(s, &words));
	synthetic_set(s, ractor, owner, 0);
	assert_false(words_are(s, &words));
	synthetic_set(s, ractor, owner, threads[1]);
	/* One is added. */
	link_ring(s, ractor, F_ractor_threads, F_thread_node, threads, 4);
	assert_false(words_are(s, &words));
	link_ring(s, ractor, F_ractor_threads, F_thread_node, threads, 3);
	assert_true(words_are(s, &words));
	/* It sleeps; one waits for the GVL. */
	synthetic_set(s, threads[1], F_thread_status, synthetic_enum(s, E_THREAD_STOPPED));
	assert_false(words_are(s, &words));
	synthetic_set(s, threads[1], F_thread_status, synthetic_enum(s, E_THREAD_RUNNABLE));
	synthetic_put_word(s, ractor + s->layout->members[F_ractor_gvl_queue].offset, queued);
	assert_false(words_are(s, &words));
}

/* There are none where they would not tell. */
static void test_no_words(void **state)
{
	struct synthetic *s = *state;
	const uint64_t one = new_thread(s, E_THREAD_RUNNABLE), two = new_thread(s, E_THREAD_RUNNABLE);
	const uint64_t first = new_ractor(s, 1, &one, 1), second = new_ractor(s, 2, &two, 1);
	const uint64_t ractors[] = {first, second};
	struct thread_words words;

	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, &first, 1);
	synthetic_set(s, first, F_ractor_sched_running, one);
	assert_true(words_of(s, &words));
	/* Several ractors: the second may come later. */
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	assert_false(words_are(s, &words));
	synthetic_set(s, second, F_ractor_sched_running, 0);
	assert_false(words_of(s, &words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_ractors, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_without_ractors, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_threads, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_list_broken_off, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_heads_that_cannot_be_read, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_circles, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_lists_that_run_together, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_too_many, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_long_queues, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_out_of_time, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_same, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_one_ractor_broken, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_states, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_owners, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_queue, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_queue_that_changes, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_native_threads, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_fibers, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_collection, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_words, set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_words, set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
