/* What of a profile is shown: views, filters, and times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "report/select.h"

static uint32_t add_stack(struct profile *profile, enum profile_kind kind, const char *name)
{
	struct profile_function function = {.kind = kind};

	function.name = function.label = profile_string(profile, name);
	return profile_add_node(profile, 0, profile_add_frame(profile, profile_add_function(profile, &function), 0));
}

static void add_span(struct profile *profile, uint32_t thread, enum sample_state state, int number, uint64_t start,
		     uint64_t weight, uint32_t count)
{
	const struct profile_span span = {
	    .start_ns = start,
	    .weight_ns = weight,
	    .count = count,
	    .thread = thread,
	    .syscall = (int16_t)number,
	    .state = (uint8_t)state,
	};

	assert_true(profile_add_span(profile, &span));
}

/* Two processes with two threads each. In each thread each state, 100 ns long, one after the other. */
static struct profile *some_profile(void)
{
	static const char *const names[] = {NULL, "worker", "7", "12"};
	struct profile *profile = profile_create();

	for (pid_t pid = 10; pid < 12; pid++) {
		const struct profile_process process = {.pid = pid, .command = profile_string(profile, "ruby")};

		profile_add_process(profile, &process);
	}
	for (uint32_t i = 0; i < 4; i++) {
		const struct profile_thread thread = {
		    .process = i / 2,
		    .tid = i == 1 ? 0 : (pid_t)(10 + i),
		    .name = profile_string(profile, names[i]),
		    .main = i % 2 == 0,
		};

		profile_add_thread(profile, &thread);
		for (int state = 0; state < SAMPLE_STATES; state++)
			add_span(profile, i, (enum sample_state)state, state == SAMPLE_BLOCKED ? SYS_read : -1,
				 (uint64_t)state * 100, 100, 10);
	}
	return profile;
}

/* What is left: how many spans of each state and thread. */
static void assert_left(struct selection selection, const char *states, const char *threads)
{
	struct profile *profile = some_profile();
	size_t count = 0;

	profile_select(profile, &selection);
	for (const char *thread = threads; *thread; thread++) {
		for (const char *state = states; *state; state++, count++) {
			assert_true(count < profile->nr_spans);
			assert_int_equal(profile->spans[count].thread, *thread - '0');
			assert_int_equal(profile->spans[count].state, *state - '0');
			assert_int_equal(profile->spans[count].count, 10);
		}
	}
	assert_int_equal(count, profile->nr_spans);
	profile_destroy(profile);
}

static void test_views(void **state)
{
	(void)state;
	/* cpu, gc, gvl, blocked, sleeping, starting, stopped, paging, runnable */
	assert_left((struct selection){.view = VIEW_WALL}, "01235678", "0123");
	assert_left((struct selection){.view = VIEW_WALL, .idle = true}, "012345678", "0123");
	assert_left((struct selection){.view = VIEW_CPU}, "01", "0123");
	assert_left((struct selection){.view = VIEW_CPU, .idle = true}, "01", "0123");
	assert_left((struct selection){.view = VIEW_GVL}, "2", "0123");
	assert_left((struct selection){.view = VIEW_GC}, "1", "0123");
	/* States, whatever the view: also what is idle. */
	assert_left((struct selection){.view = VIEW_CPU, .states = {[SAMPLE_SLEEPING] = true}}, "4", "0123");
	assert_left((struct selection){.states = {[SAMPLE_GC] = true, [SAMPLE_BLOCKED] = true}}, "13", "0123");
}

static void test_threads(void **state)
{
	(void)state;
	assert_left((struct selection){.view = VIEW_GC, .thread = "worker"}, "1", "1");
	assert_left((struct selection){.view = VIEW_GC, .thread = "main"}, "1", "02");
	assert_left((struct selection){.view = VIEW_GC, .thread = "10"}, "1", "0");
	/* One that is called as another is numbered. */
	assert_left((struct selection){.view = VIEW_GC, .thread = "12"}, "1", "23");
	assert_left((struct selection){.view = VIEW_GC, .thread = "7"}, "1", "2");
	/* 0 is no number; nor is what only begins with one, or nothing. */
	assert_left((struct selection){.view = VIEW_GC, .thread = "0"}, "1", "");
	assert_left((struct selection){.view = VIEW_GC, .thread = "10x"}, "1", "");
	assert_left((struct selection){.view = VIEW_GC, .thread = ""}, "1", "");
	assert_left((struct selection){.view = VIEW_GC, .thread = "99999999999999999999"}, "1", "");
	assert_left((struct selection){.view = VIEW_GC, .pid = 11}, "1", "23");
	assert_left((struct selection){.view = VIEW_GC, .pid = 11, .thread = "main"}, "1", "2");
	assert_left((struct selection){.view = VIEW_GC, .pid = 11, .thread = "worker"}, "1", "");
	assert_left((struct selection){.view = VIEW_GC, .pid = 12}, "1", "");
}

static void assert_cut(uint64_t from, uint64_t to, uint64_t start, uint64_t weight, uint32_t count)
{
	const struct selection selection = {.idle = true, .from_ns = from, .to_ns = to};
	struct profile *profile = some_profile();
	const struct profile_span *span = profile->spans;

	profile->nr_spans = 0;
	add_span(profile, 0, SAMPLE_CPU, -1, 1000, 100, 10);
	profile_select(profile, &selection);
	assert_int_equal(profile->nr_spans, count > 0);
	if (count > 0) {
		assert_int_equal(span->start_ns, start);
		assert_int_equal(span->weight_ns, weight);
		assert_int_equal(span->count, count);
	}
	profile_destroy(profile);
}

static void test_times(void **state)
{
	(void)state;
	assert_cut(0, 0, 1000, 100, 10);
	assert_cut(1000, 1100, 1000, 100, 10);
	assert_cut(0, 1000, 0, 0, 0);
	assert_cut(1100, 0, 0, 0, 0);
	assert_cut(0, 1050, 1000, 50, 5);
	assert_cut(1050, 0, 1050, 50, 5);
	assert_cut(1025, 1075, 1025, 50, 5);
	/* In proportion, but there was one. */
	assert_cut(0, 1001, 1000, 1, 1);
	assert_cut(1099, 5000, 1099, 1, 1);
	/* From behind to. */
	assert_cut(1050, 1040, 0, 0, 0);
	assert_cut(UINT64_MAX, 0, 0, 0, 0);
}

static bool is_idle(const struct profile *profile, enum sample_state state, int number, uint32_t node)
{
	const struct profile_span span = {.state = (uint8_t)state, .syscall = (int16_t)number, .node = node};

	return span_is_idle(profile, &span);
}

static void test_idle(void **state)
{
	static const int waits[] = {SYS_accept4, SYS_epoll_wait, SYS_select, SYS_wait4, SYS_clock_nanosleep};
	static const int works[] = {SYS_read, SYS_write, SYS_poll, SYS_futex, SYS_fsync, -1};
	struct profile *profile = profile_create();
	uint32_t accepts = add_stack(profile, PROFILE_CFUNC, "TCPServer#accept");
	uint32_t selects = add_stack(profile, PROFILE_CFUNC, "IO.select"),
		 own = add_stack(profile, PROFILE_RUBY, "IO.select");
	uint32_t reads = add_stack(profile, PROFILE_CFUNC, "IO#read");

	(void)state;
	assert_true(is_idle(profile, SAMPLE_SLEEPING, -1, 0));
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		assert_true(is_idle(profile, SAMPLE_BLOCKED, waits[i], 0));
		assert_true(is_idle(profile, SAMPLE_BLOCKED, waits[i], reads));
		assert_false(is_idle(profile, SAMPLE_CPU, waits[i], 0));
	}
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		assert_false(is_idle(profile, SAMPLE_BLOCKED, works[i], 0));
		assert_false(is_idle(profile, SAMPLE_BLOCKED, works[i], reads));
		assert_false(is_idle(profile, SAMPLE_BLOCKED, works[i], own));
		assert_true(is_idle(profile, SAMPLE_BLOCKED, works[i], accepts));
		assert_true(is_idle(profile, SAMPLE_BLOCKED, works[i], selects));
		assert_false(is_idle(profile, SAMPLE_CPU, works[i], accepts));
		assert_false(is_idle(profile, SAMPLE_GVL, works[i], accepts));
	}
	profile_destroy(profile);
}

static void test_names(void **state)
{
	enum profile_view view;
	enum sample_state of;

	(void)state;
	for (int i = 0; i < PROFILE_VIEWS; i++) {
		assert_true(profile_view_parse(profile_view_name((enum profile_view)i), &view));
		assert_int_equal(view, i);
	}
	for (int i = 0; i < SAMPLE_STATES; i++) {
		assert_true(sample_state_parse(sample_state_name((enum sample_state)i), &of));
		assert_int_equal(of, i);
	}
	assert_false(profile_view_parse("", &view) || profile_view_parse("CPU", &view));
	assert_false(sample_state_parse("", &of) || sample_state_parse("idle", &of));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_views), cmocka_unit_test(test_threads), cmocka_unit_test(test_times),
	    cmocka_unit_test(test_idle),  cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
