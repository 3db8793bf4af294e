/* One look at a target that says more than there is time for: what is not read is marked, and the rest is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/look.h"
#include "synthetic.h"
#include "target/live.h"

/* So many threads, each of which has the same stack of so many frames. */
#define THREADS 2000
#define FRAMES	500

/* Many times what a look takes here at most; without a limit it takes more. */
#define SHORT_NS 1000000L
#define MUCH_NS	 30000000000L

struct scene {
	struct session session;
	struct module module;
	struct target target;
	struct native_thread natives[THREADS];
	uint64_t threads[THREADS];
	struct look look;
};

static struct scene scene;

static void link_ring(struct synthetic *s, uint64_t object, enum layout_member_id head, enum layout_member_id node,
		      const uint64_t *objects, size_t count)
{
	uint64_t next = s->layout->members[F_list_node_next].offset, at = object + s->layout->members[head].offset;
	const uint64_t head_node = at - next;

	for (size_t i = 0; i < count; i++) {
		uint64_t link = objects[i] + s->layout->members[node].offset;

		synthetic_put_word(s, at, link);
		at = link + next;
	}
	synthetic_put_word(s, at, head_node);
}

/* A VM with one ractor, all of whose threads wait for the GVL. */
static int set_up(void **state)
{
	struct synthetic *s;
	uint64_t stack, size, ractor, ec, native;

	synthetic_set_up(state);
	s = *state;
	scene = (struct scene){0};
	size = FRAMES * (uint64_t)s->layout->sizes[S_cfp].value;
	stack = synthetic_allocate(s, size);
	for (size_t i = 0; i < THREADS; i++) {
		scene.threads[i] = synthetic_struct(s, S_thread);
		ec = synthetic_struct(s, S_ec);
		native = synthetic_struct(s, S_nt);
		synthetic_set(s, ec, F_ec_thread_ptr, scene.threads[i]);
		synthetic_set(s, ec, F_ec_vm_stack, stack);
		synthetic_set(s, ec, F_ec_vm_stack_size, size / 8);
		synthetic_set(s, ec, F_ec_cfp, stack);
		synthetic_set(s, native, F_nt_thread_id, 0x7f0000000000 + i * 64);
		synthetic_set(s, scene.threads[i], F_thread_ec, ec);
		synthetic_set(s, scene.threads[i], F_thread_nt, native);
		synthetic_set(s, scene.threads[i], F_thread_status, synthetic_enum(s, E_THREAD_STOPPED));
		synthetic_set(s, scene.threads[i], F_thread_name, synthetic_string(s, "waits"));
		scene.natives[THREADS - 1 - i] = (struct native_thread){
		    .tid = (pid_t)(1000 + i), .stopped = true, .fs_base = 0x7f0000000000 + i * 64};
	}
	s->ruby.vm = synthetic_struct(s, S_vm);
	ractor = synthetic_struct(s, S_ractor);
	synthetic_set(s, ractor, F_ractor_id, 1);
	synthetic_set(s, s->ruby.vm, F_vm_main_thread, scene.threads[0]);
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, &ractor, 1);
	link_ring(s, ractor, F_ractor_threads, F_thread_node, scene.threads, THREADS);
	link_ring(s, ractor, F_ractor_gvl_queue, F_thread_gvl_node, scene.threads, THREADS);
	scene.target = (struct target){.operations = &core_operations, .threads = scene.natives, .nr_threads = THREADS};
	scene.session = (struct session){.target = &scene.target,
					 .module = &scene.module,
					 .memory = s->ruby.memory,
					 .layout = {.layout = s->layout}};
	scene.look = (struct look){.ruby = s->ruby};
	return 0;
}

static int tear_down(void **state)
{
	look_clear(&scene.look);
	return synthetic_tear_down(state);
}

static void assert_described(size_t i)
{
	const struct trace_thread *thread = &scene.look.trace->threads[i];

	assert_int_equal(thread->id, scene.threads[i]);
	assert_int_equal(thread->tid, 1000 + i);
	assert_int_equal(thread->state, STATE_WAITING_GVL);
	assert_string_equal(thread->name, "waits");
	assert_int_equal(thread->main, i == 0);
}

static void test_all(void **state)
{
	(void)state;
	look_once(&scene.session, &scene.look, LOOK_NS * 10);
	assert_false(scene.look.no_memory);
	assert_false(scene.look.untested);
	assert_int_equal(scene.look.trace->nr_threads, THREADS);
	assert_int_equal(scene.look.trace->threads_missing, LIST_COMPLETE);
	for (size_t i = 0; i < THREADS; i++) {
		assert_described(i);
		assert_int_equal(scene.look.trace->threads[i].nr_frames, FRAMES - 1);
	}
	/* The Ruby that never was has no operators. */
	assert_non_null(scene.look.refused);
}

/* Of those that there was no time for, all is known but the stack. */
static void test_some(void **state)
{
	size_t without = 0, with = 0;
	struct timespec began;

	(void)state;
	/* All is copied. */
	look_once(&scene.session, &scene.look, LOOK_NS * 10);
	for (long limit = SHORT_NS; with == 0; limit += limit / 2) {
		clock_gettime(CLOCK_MONOTONIC, &began);
		look_once(&scene.session, &scene.look, limit);
		assert_true(elapsed_ns(&began) < limit + MUCH_NS);
		assert_false(scene.look.no_memory);
		assert_int_equal(trace_exit_status(scene.look.trace), 1);
		if (scene.look.trace->threads_missing != LIST_COMPLETE) {
			assert_int_equal(scene.look.trace->threads_missing, LIST_OUT_OF_TIME);
			continue;
		}
		assert_int_equal(scene.look.trace->nr_threads, THREADS);
		for (size_t i = 0; i < THREADS && scene.look.trace->threads[i].nr_frames > 0; i++, with++)
			assert_int_equal(scene.look.trace->threads[i].nr_frames, FRAMES - 1);
	}
	/* Names are read before stacks: where there are stacks, all are there. */
	for (size_t i = 0; i < THREADS; i++) {
		const struct trace_thread *thread = &scene.look.trace->threads[i];

		assert_described(i);
		if (i < with)
			continue;
		without++;
		assert_int_equal(thread->reason, REASON_OUT_OF_TIME);
		assert_int_equal(thread->verdict, VERDICT_UNREADABLE);
		assert_int_equal(thread->nr_frames, 0);
	}
	assert_int_not_equal(without, 0);
	assert_int_equal(scene.look.trace->fibers_missing, LIST_OUT_OF_TIME);
}

/* With no time at all nothing is known, also not of the layout. */
static void test_none(void **state)
{
	(void)state;
	look_once(&scene.session, &scene.look, 10);
	assert_false(scene.look.no_memory);
	assert_true(scene.look.untested);
	assert_int_equal(scene.look.trace->nr_threads, 0);
	assert_int_equal(scene.look.trace->threads_missing, LIST_OUT_OF_TIME);
	assert_int_equal(scene.look.trace->fibers_missing, LIST_OUT_OF_TIME);
	assert_int_equal(trace_exit_status(scene.look.trace), 1);
}

/* What is moved is all there in the other, and the first one can look again. */
static void test_move(void **state)
{
	struct look other = {.ruby = scene.look.ruby};
	const struct trace *trace;

	(void)state;
	look_once(&scene.session, &scene.look, LOOK_NS * 10);
	trace = scene.look.trace;
	look_move(&scene.look, &other);
	assert_ptr_equal(other.trace, trace);
	assert_null(scene.look.trace);
	look_once(&scene.session, &scene.look, LOOK_NS * 10);
	assert_int_equal(scene.look.trace->nr_threads, THREADS);
	assert_int_equal(other.trace->nr_threads, THREADS);
	look_move(&scene.look, &other);
	look_clear(&other);
}

/* No name of any object is left, and what there was no time for still says so. */
static void test_compacted(void **state)
{
	struct trace_thread *threads;

	(void)state;
	look_once(&scene.session, &scene.look, LOOK_NS * 10);
	threads = scene.look.trace->threads;
	threads[1].waits_in = "Scheduler#io_wait";
	threads[1].waits_for = "IO#read";
	threads[2].reason = REASON_OUT_OF_TIME;
	threads[2].verdict = VERDICT_UNREADABLE;
	assert_int_equal(look_mark_compacted(&scene.look), THREADS);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(threads[i].reason, i == 2 ? REASON_OUT_OF_TIME : REASON_COMPACTED);
		assert_int_equal(threads[i].verdict, VERDICT_UNREADABLE);
		assert_null(threads[i].name);
		assert_null(threads[i].waits_in);
		assert_null(threads[i].waits_for);
		assert_int_equal(threads[i].nr_frames, 0);
		assert_int_equal(threads[i].id, scene.threads[i]);
	}
	assert_int_equal(trace_exit_status(scene.look.trace), 1);
}

/* ---- a target that goes on: what it has now is read from where it is, which is this very process */

static void *now;

static int set_up_running(void **state)
{
	struct synthetic *s;

	set_up(state);
	s = *state;
	now = mmap((void *)SYNTHETIC_BASE, SYNTHETIC_SIZE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	assert_ptr_equal(now, (void *)SYNTHETIC_BASE);
	for (size_t i = 0; i < SYNTHETIC_SIZE / MEMORY_PAGE; i++)
		if (s->mapped[i])
			memcpy((uint8_t *)now + i * MEMORY_PAGE, s->bytes + i * MEMORY_PAGE, MEMORY_PAGE);
	scene.target = (struct target){.operations = &live_operations, .pid = getpid(), .memory_fd = -1};
	scene.session.memory = memory_create(target_read_pages, &scene.target, SESSION_PAGES);
	scene.session.no_stop = true;
	assert_non_null(scene.session.memory);
	scene.look.ruby.memory = scene.session.memory;
	look_once(&scene.session, &scene.look, LOOK_NS * 10);
	assert_int_equal(scene.look.trace->nr_threads, THREADS);
	return 0;
}

static int tear_down_running(void **state)
{
	memory_destroy(scene.session.memory);
	assert_int_equal(munmap(now, SYNTHETIC_SIZE), 0);
	return tear_down(state);
}

static void put_now(uint64_t address, uint64_t word)
{
	memcpy((uint8_t *)now + (address - SYNTHETIC_BASE), &word, sizeof(word));
}

/* Those that have moved are `moved` of the first THREADS - 1 threads; the list has, or has not. */
static void assert_moved(const size_t *moved, size_t count, enum list_missing missing)
{
	const struct trace *trace = scene.look.trace;
	struct ruby_threads later;

	/* That there are no fibers is not known of this Ruby. */
	scene.look.trace->fibers_missing = LIST_COMPLETE;
	assert_true(look_list_now(&scene.session, &scene.look, &later));
	assert_int_equal(look_mark_moved(&scene.session, &scene.look, &later), count + (missing == LIST_BROKEN));
	threads_clear(&later);
	assert_false(scene.look.no_memory);
	assert_int_equal(trace->threads_missing, missing);
	for (size_t i = 0; i < THREADS; i++) {
		bool expected = false;

		for (size_t j = 0; j < count; j++)
			expected |= moved[j] == i;
		assert_int_equal(trace->threads[i].reason == REASON_MOVED, expected);
		if (expected)
			assert_int_equal(trace->threads[i].verdict, VERDICT_TORN);
	}
}

static void test_nothing_moved(void **state)
{
	(void)state;
	assert_moved(NULL, 0, LIST_COMPLETE);
}

static void test_some_moved(void **state)
{
	const size_t moved[] = {3, 700};
	const struct layout *layout = scene.session.layout.layout;

	(void)state;
	for (size_t i = 0; i < 2; i++)
		put_now(scene.look.threads.threads[moved[i]].ec + layout->members[F_ec_cfp].offset, 8);
	assert_moved(moved, 2, LIST_COMPLETE);
}

/* A thread that has ended since is no longer linked; its stack is as it was. */
static void test_list_moved(void **state)
{
	const struct layout *layout = scene.session.layout.layout;
	uint64_t next = layout->members[F_list_node_next].offset, node = layout->members[F_thread_node].offset;

	(void)state;
	put_now(scene.threads[5] + node + next, scene.threads[7] + node);
	assert_moved(NULL, 0, LIST_BROKEN);
	assert_int_equal(trace_exit_status(scene.look.trace), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_all, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_some, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_none, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_compacted, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_move, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_nothing_moved, set_up_running, tear_down_running),
	    cmocka_unit_test_setup_teardown(test_some_moved, set_up_running, tear_down_running),
	    cmocka_unit_test_setup_teardown(test_list_moved, set_up_running, tear_down_running),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
