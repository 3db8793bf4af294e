/* Facts that the text and the JSON of a trace must both tell: about the layout, threads and fibers, and a core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "synthetic_trace.h"

static void test_nearest(void **state)
{
	json_t *root;

	(void)state;
	trace.nr_threads = 0;
	trace.pauses = 0;
	trace.layout_source = LAYOUT_NEAREST;
	trace.layout_releases = "9.8.3 9.8.6";
	assert_text("Process 4242: ruby 9.8.7 (a test)\n0 threads, not paused\n"
		    "Layout: of 9.8.3 to 9.8.6, the nearest to 9.8.7; the layout was not made for this release\n");
	root = json();
	assert_member(json_object_get(root, "layout"), "source", "nearest");
	assert_member(json_object_get(root, "layout"), "releases", "9.8.3 9.8.6");
	json_decref(root);
	trace.layout_releases = "9.8.6";
	assert_line("Layout: of 9.8.6, the nearest to 9.8.7; the layout was not made for this release");
}

static void test_states(void **state)
{
	static const struct {
		enum trace_state state;
		const char *text, *name;
	} states[] = {
	    {STATE_UNKNOWN, "state unknown", "unknown"},
	    {STATE_RUNNING, "running", "running"},
	    {STATE_WAITING_GVL, "waiting for the GVL", "waiting_gvl"},
	    {STATE_SLEEPING, "sleeping", "sleeping"},
	    {STATE_SLEEPING_FOREVER, "sleeping forever", "sleeping_forever"},
	    {STATE_BLOCKED, "blocked", "blocked"},
	    {STATE_DEAD, "dead", "dead"},
	    {STATE_SUSPENDED, "suspended", "suspended"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		char line[64];
		json_t *root;

		threads[0].state = states[i].state;
		snprintf(line, sizeof(line), "Thread 4242 (main) %s", states[i].text);
		assert_line(line);
		root = json();
		assert_member(first(root, "threads"), "state", states[i].name);
		json_decref(root);
	}
}

/* Threads that are not there, and why. */
static void test_missing_threads(void **state)
{
	static const struct {
		enum list_missing missing;
		const char *name, *line;
	} cases[] = {
	    {LIST_BROKEN, "list-broken", "Threads may be missing: the list was changing, or it is incomplete"},
	    {LIST_TOO_LONG, "too-many", "Threads may be missing: the list is too long for rbdump"},
	    {LIST_OUT_OF_TIME, "out-of-time", "Threads may be missing: there was no time left to read the list"},
	};
	json_t *root = json(), *list = json_object_get(root, "thread_list");

	(void)state;
	assert_true(json_is_true(json_object_get(list, "complete")));
	assert_true(json_is_null(json_object_get(list, "reason")));
	assert_true(json_is_null(json_object_get(list, "missing")));
	assert_int_equal(trace_exit_status(&trace), 0);
	json_decref(root);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		trace.threads_missing = cases[i].missing;
		assert_line(cases[i].line);
		assert_int_equal(trace_exit_status(&trace), 1);
		root = json();
		list = json_object_get(root, "thread_list");
		assert_true(json_is_false(json_object_get(list, "complete")));
		assert_string_equal(json_string_value(json_object_get(list, "reason")), cases[i].name);
		json_decref(root);
	}
	trace.threads_missing = LIST_COMPLETE;
}

static void test_fibers(void **state)
{
	json_t *root, *fiber;

	(void)state;
	threads[0].fiber = 0x7000;
	threads[1] = threads[0];
	threads[1].state = STATE_SUSPENDED;
	threads[1].suspended = true;
	threads[1].fiber = 0x8000;
	threads[1].fiber_state = "suspended";
	trace.nr_threads = 2;
	assert_line("1 thread, 1 suspended fiber, paused for 123 us");
	assert_line("Thread 4242 (main) running");
	assert_line("Fiber 0x8000 suspended, of thread 4242 (main)");
	threads[0].resumed_by = 0x8000;
	threads[1].resumed_by = 0x9000;
	assert_line("Thread 4242 (main) running, in fiber 0x7000, resumed by 0x8000");
	assert_line("Fiber 0x8000 suspended, of thread 4242 (main), resumed by 0x9000");
	threads[1].resumed_by = 0;
	threads[1].waits_in = "Scheduler#block";
	assert_line("Fiber 0x8000 suspended, of thread 4242 (main), waits in Scheduler#block");
	threads[1].waits_for = "Queue#pop";
	assert_line("Fiber 0x8000 suspended, of thread 4242 (main), waits in Scheduler#block for Queue#pop");
	threads[1].waits_in = NULL;
	threads[1].ended = true;
	assert_line("Fiber 0x8000 suspended, of a thread that has ended");

	root = json();
	fiber = json_object_get(json_array_get(json_object_get(root, "threads"), 1), "fiber");
	assert_true(json_is_false(json_object_get(fiber, "current")));
	assert_true(json_is_null(json_object_get(fiber, "waits_on")));
	assert_true(json_is_true(json_object_get(json_object_get(root, "fibers"), "complete")));
	assert_int_equal(trace_exit_status(&trace), 0);
	json_decref(root);
	trace.fibers_missing = LIST_MISSED;
	trace.nr_fibers_missing = 7;
	assert_line("Fibers may be missing: 7 (some fibers were not found)");
	assert_int_equal(trace_exit_status(&trace), 1);
	trace.fibers_missing = LIST_NOT_KNOWN;
	trace.nr_fibers_missing = 0;
	assert_line("Fibers may be missing: rbdump does not know how to find the list in the memory of this Ruby");
	assert_int_equal(trace_exit_status(&trace), 1);
	trace.fibers_missing = LIST_COMPLETE;
}

static void test_core(void **state)
{
	json_t *root, *core;

	(void)state;
	trace.pauses = 0;
	trace.of_core = true;
	trace.core = (struct trace_core){.file = "core", .program = "shop\n", .tid = 4242};
	assert_line("1 thread, still running when the core was made");
	trace.core.signal = 11;
	assert_line("1 thread, signal 11 in thread 4242");
	trace.core.signal_name = "SIGSEGV";
	trace.core.has_fault = true;
	trace.core.fault = 16;
	trace.core.lacks[0] = "a\tpage";
	trace.core.nr_lacks = 1;
	assert_text("Core of process 4242 (shop\\x0A): ruby 9.8.7 (a test)\n"
		    "1 thread, SIGSEGV at address 0x10 in thread 4242\n"
		    "Not in the core: a\\x09page\n"
		    "\n"
		    "Thread 4242 (main) running\n"
		    "    shop.rb:12:in 'open' Shop#open\n");

	root = json();
	core = json_object_get(root, "core");
	assert_member(root, "mode", "core");
	assert_member(root, "pause_us", NULL);
	assert_member(core, "file", "core");
	assert_number(core, "signal", 11);
	assert_member(core, "signal_name", "SIGSEGV");
	assert_member(core, "address", "0x10");
	assert_number(core, "tid", 4242);
	assert_string_equal(json_string_value(json_array_get(json_object_get(core, "lacks"), 0)), "a\tpage");
	json_decref(root);
}

static void test_window(void **state)
{
	json_t *root;

	(void)state;
	threads[0].verdict = VERDICT_TORN;
	threads[0].reason = REASON_WINDOW;
	threads[0].window = "vm_push_frame";
	assert_line("Thread 4242 (main) running [torn: the thread was stopped while its stack was being changed "
		    "(vm_push_frame)]");
	root = json();
	assert_member(first(root, "threads"), "window", "vm_push_frame");
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_nearest, set_up_trace),
	    cmocka_unit_test_setup(test_states, set_up_trace),
	    cmocka_unit_test_setup(test_missing_threads, set_up_trace),
	    cmocka_unit_test_setup(test_fibers, set_up_trace),
	    cmocka_unit_test_setup(test_core, set_up_trace),
	    cmocka_unit_test_setup(test_window, set_up_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
