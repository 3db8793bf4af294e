/*
 * Threads that are shown as one: which they are, in which order all is shown, and how their names and tids are joined.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "synthetic_trace.h"

#define STACK "    shop.rb:12:in 'open' Shop#open\n"

/* Makes a main thread that sleeps, and `count` threads behind it that sleep forever; their names are in `names`. */
static void make_threads(size_t count, const char *const *names)
{
	threads[0].state = STATE_SLEEPING;
	for (size_t i = 0; i < count; i++)
		threads[i + 1] = (struct trace_thread){
		    .id = 0x1000 + i,
		    .tid = 101 + (pid_t)i,
		    .ractor = 1,
		    .name = names ? names[i] : NULL,
		    .state = STATE_SLEEPING_FOREVER,
		    .frames = frames,
		    .nr_frames = 1,
		};
	trace.nr_threads = count + 1;
}

/* The headings of what is shown, joined. */
static void assert_headings(const char *expected)
{
	char *text = text_of(false), *rest = text, *headings = calloc(1, strlen(text) + 1), *line;

	assert_non_null(headings);
	for (size_t i = 0; (line = strsep(&rest, "\n")); i++)
		if (i >= 2 && line[0] && line[0] != ' ')
			strcat(strcat(headings, line), "\n");
	assert_string_equal(headings, expected);
	free(headings);
	free(text);
}

static void test_three_are_folded(void **state)
{
	const char *const names[] = {"worker 8", "worker 9", "worker 10"};

	(void)state;
	make_threads(3, names);
	assert_text("Process 4242: ruby 9.8.7 (a test)\n"
		    "4 threads, paused for 123 us\n"
		    "\n"
		    "Thread 4242 (main) sleeping\n" STACK "\n"
		    "3 threads, sleeping forever: \"worker 8 … 10\" (tids 101 … 103)\n" STACK);
}

static void test_two_are_not_folded(void **state)
{
	const char *const names[] = {"worker 8", "worker 9"};

	(void)state;
	make_threads(2, names);
	assert_headings("Thread 4242 (main) sleeping\n"
			"Thread 101 \"worker 8\" sleeping forever\n"
			"Thread 102 \"worker 9\" sleeping forever\n");
}

/* Running threads come first, then others, then what is folded. In each of these three, the order is Ruby's. */
static void test_order(void **state)
{
	(void)state;
	make_threads(8, NULL);
	threads[2].state = STATE_BLOCKED;
	threads[4].state = STATE_WAITING_GVL;
	threads[6].state = STATE_RUNNING;
	threads[8].state = STATE_DEAD;
	assert_headings("Thread 104 waiting for the GVL\n"
			"Thread 106 running\n"
			"Thread 4242 (main) sleeping\n"
			"Thread 102 blocked\n"
			"Thread 108 dead\n"
			"4 threads, sleeping forever (tids 101, 103, 105, 107)\n");
}

static void test_all_keeps_the_order(void **state)
{
	char *text;

	(void)state;
	make_threads(4, NULL);
	threads[4].state = STATE_RUNNING;
	text = text_of_all();
	assert_string_equal(text, "Process 4242: ruby 9.8.7 (a test)\n"
				  "5 threads, paused for 123 us\n"
				  "\nThread 4242 (main) sleeping\n" STACK "\nThread 101 sleeping forever\n" STACK
				  "\nThread 102 sleeping forever\n" STACK "\nThread 103 sleeping forever\n" STACK
				  "\nThread 104 running\n" STACK);
	free(text);
}

/* What differs is never folded: the line, the path, the label, the state, the ractor. */
static void test_differences(void **state)
{
	(void)state;
	make_threads(9, NULL);
	for (size_t i = 1; i <= 3; i++)
		frames[i] = frames[0];
	frames[1].line = 13;
	frames[2].path = "shop2.rb";
	frames[3].label = "open!";
	for (size_t i = 1; i <= 3; i++)
		threads[i].frames = &frames[i];
	threads[4].state = STATE_SLEEPING;
	threads[5].ractor = 2;
	threads[6].nr_frames = 0;
	assert_headings("Thread 4242 (main) of ractor 1 sleeping\n"
			"Thread 101 of ractor 1 sleeping forever\n"
			"Thread 102 of ractor 1 sleeping forever\n"
			"Thread 103 of ractor 1 sleeping forever\n"
			"Thread 104 of ractor 1 sleeping\n"
			"Thread 105 of ractor 2 sleeping forever\n"
			"Thread 106 of ractor 1 sleeping forever\n"
			"3 threads, sleeping forever, of ractor 1 (tids 107 … 109)\n");
}

/* Threads that wait for different Mutexes or Monitors are not folded. For which queue they wait does not matter. */
static void test_locks(void **state)
{
	static const struct {
		enum wait_kind kind;
		uint64_t object;
	} waits[] = {
	    {WAIT_MUTEX, 0x5000}, {WAIT_MUTEX, 0x5000}, {WAIT_MUTEX, 0x5000},
	    {WAIT_MUTEX, 0x6000}, {WAIT_MUTEX, 0x6000}, {WAIT_POP, 0x7000},
	    {WAIT_POP, 0x8000},	  {WAIT_POP, 0x9000},	{WAIT_MONITOR, 0x5008},
	};
	const size_t count = sizeof(waits) / sizeof(waits[0]);

	(void)state;
	make_threads(count, NULL);
	for (size_t i = 0; i < count; i++)
		threads[i + 1].wait = (struct trace_wait){
		    .kind = waits[i].kind, .object = waits[i].object, .holder_entry = WAIT_NO_ENTRY};
	assert_headings("Thread 4242 (main) sleeping\n"
			"Thread 104 sleeping forever\n"
			"Thread 105 sleeping forever\n"
			"Thread 109 sleeping forever\n"
			"3 threads, sleeping forever (tids 101 … 103)\n"
			"3 threads, sleeping forever (tids 106 … 108)\n");
}

/* A stack that is not complete is never folded, even if others are the same. */
static void test_not_complete(void **state)
{
	(void)state;
	make_threads(6, NULL);
	for (size_t i = 1; i <= 3; i++) {
		threads[i].verdict = VERDICT_TORN;
		threads[i].reason = REASON_MOVED;
	}
	threads[3].verdict = VERDICT_TRUNCATED;
	assert_line("3 threads, sleeping forever (tids 104 … 106)");
	for (size_t i = 1; i <= 3; i++) {
		char *text = text_of(false), heading[64];

		snprintf(heading, sizeof(heading), "\nThread %zu sleeping forever [t", 100 + i);
		assert_non_null(strstr(text, heading));
		free(text);
	}
}

/* The thread that received the signal is shown alone. */
static void test_signal(void **state)
{
	(void)state;
	make_threads(4, NULL);
	trace.of_core = true;
	trace.pauses = 0;
	trace.core = (struct trace_core){.signal = 11, .signal_name = "SIGSEGV", .tid = 102};
	assert_headings("Thread 4242 (main) sleeping\n"
			"Thread 102 sleeping forever\n"
			"3 threads, sleeping forever (tids 101, 103, 104)\n");
}

/* A thread keeps its fibers behind it, and is not folded. Fibers that wait for the same are. */
static void test_fibers(void **state)
{
	(void)state;
	make_threads(10, NULL);
	for (size_t i = 3; i <= 6; i++) {
		threads[i].id = threads[2].id;
		threads[i].tid = threads[2].tid;
		threads[i].suspended = true;
		threads[i].state = STATE_SUSPENDED;
		threads[i].fiber = 0xf00 + i;
		threads[i].fiber_state = "suspended";
		threads[i].waits_in = "Scheduler#io_wait";
	}
	threads[4].waits_in = "Scheduler#block";
	assert_headings("Thread 4242 (main) sleeping\n"
			"Thread 102 sleeping forever\n"
			"3 fibers suspended, of thread 102, waits in Scheduler#io_wait: 0xf03, 0xf05, 0xf06\n"
			"Fiber 0xf04 suspended, of thread 102, waits in Scheduler#block\n"
			"5 threads, sleeping forever (tids 101, 107 … 110)\n");
}

static void assert_names(size_t count, const char *const *names, const char *expected)
{
	char *heading;

	make_threads(count, names);
	for (size_t i = 1; i <= count; i++)
		threads[i].tid = 0; /* not known */
	assert_true(asprintf(&heading, "%zu threads, sleeping forever%s", count, expected) > 0);
	assert_line(heading);
	free(heading);
}

#define NAMES(expected, ...)                                                                                           \
	({                                                                                                             \
		const char *const names_[] = {__VA_ARGS__};                                                            \
                                                                                                                       \
		assert_names(sizeof(names_) / sizeof(names_[0]), names_, expected);                                    \
	})

static void test_names(void **state)
{
	(void)state;
	NAMES("", NULL, NULL, NULL);
	NAMES(": \"w\" (2), 1 without a name", "w", NULL, "w");
	NAMES(": \"a\", \"b\", \"c\"", "b", "a", "c");
	NAMES(": \"tp 003 … 005, 009, 010\"", "tp 010", "tp 004", "tp 003", "tp 005", "tp 009");
	NAMES(": \"tp 9 … 11\"", "tp 11", "tp 10", "tp 9");
	NAMES(": \"tp 09, 010, 011\"", "tp 09", "tp 010", "tp 011"); /* 09 is not followed by 010 */
	NAMES(": \"tp 1, 1, 2\"", "tp 1", "tp 2", "tp 1");
	NAMES(": \"7 … 9\"", "7", "8", "9");
	NAMES(": \"a 1 (x)\" … \"a 3 (x)\"", "a 3 (x)", "a 2 (x)", "a 1 (x)");
	NAMES(": \"a\", \"a1\", \"a-1\"", "a", "a1", "a-1");
	NAMES(": \"1234567890123456789\", \"1234567890123456790\", \"x\"", "x", "1234567890123456789",
	      "1234567890123456790");
	NAMES(": \"a\", \"b\", \"c\", \"d\", \"e\", \"f\", and 2 more", "a", "b", "c", "d", "e", "f", "g", "h");
	NAMES(": \"n 1, 3, 5, 7, 9, 11, 13, 15\" and 2 more", "n 1", "n 3", "n 5", "n 7", "n 9", "n 11", "n 13", "n 15",
	      "n 17", "n 19");
}

/* Names are any text: none of it drives a terminal, and only digits are joined. */
static void test_hostile_names(void **state)
{
	(void)state;
	NAMES(": \"\\x1B[31m 1 … 3\"", "\x1b[31m 1", "\x1b[31m 2", "\x1b[31m 3");
	NAMES(": \"a 1\\x0A\" … \"a 3\\x0A\"", "a 1\n", "a 2\n", "a 3\n");
}

static void test_tids(void **state)
{
	(void)state;
	make_threads(12, NULL);
	for (size_t i = 1; i <= 12; i++)
		threads[i].tid = (pid_t)(500 - 2 * i);
	assert_line("12 threads, sleeping forever (tids 476, 478, 480, 482, 484, 486, 488, 490, and 4 more)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_three_are_folded, set_up_trace),
	    cmocka_unit_test_setup(test_two_are_not_folded, set_up_trace),
	    cmocka_unit_test_setup(test_order, set_up_trace),
	    cmocka_unit_test_setup(test_all_keeps_the_order, set_up_trace),
	    cmocka_unit_test_setup(test_differences, set_up_trace),
	    cmocka_unit_test_setup(test_locks, set_up_trace),
	    cmocka_unit_test_setup(test_not_complete, set_up_trace),
	    cmocka_unit_test_setup(test_signal, set_up_trace),
	    cmocka_unit_test_setup(test_fibers, set_up_trace),
	    cmocka_unit_test_setup(test_names, set_up_trace),
	    cmocka_unit_test_setup(test_hostile_names, set_up_trace),
	    cmocka_unit_test_setup(test_tids, set_up_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
