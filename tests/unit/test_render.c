/* What is printed of a trace: the text to the byte, the JSON as a parser reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/error.h"
#include "base/text.h"
#include "render/render.h"

static struct trace_frame frames[8];
static struct trace_thread threads[3];
static struct trace trace;

/* A main thread that runs Shop#open, in a process that was paused once. */
static int set_up(void **state)
{
	(void)state;
	memset(frames, 0, sizeof(frames));
	memset(threads, 0, sizeof(threads));
	frames[0] = (struct trace_frame){
	    .kind = TRACE_RUBY,
	    .label = "open",
	    .name = "Shop#open",
	    .path = "shop.rb",
	    .absolute_path = "/srv/shop.rb",
	    .has_line = true,
	    .line = 12,
	};
	threads[0] = (struct trace_thread){
	    .tid = 4242, .ractor = 1, .main = true, .state = STATE_RUNNING, .frames = frames, .nr_frames = 1};
	trace = (struct trace){
	    .pid = 4242,
	    .ruby_version = "9.8.7",
	    .ruby_description = "ruby 9.8.7 (a test)",
	    .arch = "x86_64",
	    .layout_source = LAYOUT_BY_VERSION,
	    .layout_file = "/a/file.layout",
	    .layout_build_id = "00ff",
	    .pauses = 1,
	    .pause_us = 123.4,
	    .threads = threads,
	    .nr_threads = 1,
	};
	return 0;
}

static char *text_of(bool colour)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	assert_non_null(stream);
	render_text(&trace, colour, stream);
	fclose(stream);
	return text;
}

static void assert_text(const char *expected)
{
	char *text = text_of(false);

	assert_string_equal(text, expected);
	free(text);
}

/* The text has this line. */
static void assert_line(const char *line)
{
	char *text = text_of(false), *with_newlines;

	assert_true(asprintf(&with_newlines, "\n%s\n", line) > 0);
	if (!strstr(text, with_newlines))
		fail_msg("no line \"%s\" in:\n%s", line, text);
	free(with_newlines);
	free(text);
}

static json_t *json(void)
{
	char *text = NULL;
	json_error_t error;
	size_t length;
	FILE *stream = open_memstream(&text, &length);
	json_t *root;

	assert_non_null(stream);
	assert_true(render_json(&trace, stream));
	fclose(stream);
	/* One line, in UTF-8: jansson takes nothing else. */
	assert_ptr_equal(strchr(text, '\n'), text + length - 1);
	/* Nor does any of it drive a terminal. */
	for (const char *at = text; at < text + length - 1; at++) {
		assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
		assert_false(at[0] == '\xc2' && (unsigned char)at[1] < 0xa0);
	}
	assert_null(strstr(text, "\u202e"));
	assert_null(strstr(text, "\u061c"));
	root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		fail_msg("%s", error.text);
	free(text);
	return root;
}

static json_t *first(const json_t *object, const char *key)
{
	return json_array_get(json_object_get(object, key), 0);
}

static void assert_member(const json_t *object, const char *key, const char *expected)
{
	json_t *value = json_object_get(object, key);

	assert_non_null(value);
	if (expected)
		assert_string_equal(json_string_value(value), expected);
	else
		assert_true(json_is_null(value));
}

static void assert_number(const json_t *object, const char *key, int64_t expected)
{
	json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	assert_true(json_integer_value(value) == expected);
}

static void test_text(void **state)
{
	(void)state;
	assert_text("Process 4242: ruby 9.8.7 (a test)\n"
		    "1 thread, paused for 123 us\n"
		    "\n"
		    "Thread 4242 (main) running\n"
		    "    shop.rb:12:in 'open' Shop#open\n");
}

static void test_text_of_what_is_missing(void **state)
{
	(void)state;
	trace.ruby_description = NULL;
	trace.pauses = 0;
	threads[0] = (struct trace_thread){.ractor = 1, .frames = frames, .nr_frames = 1};
	frames[0].path = NULL;
	frames[0].has_line = false;
	threads[1] = (struct trace_thread){.tid = 1, .ractor = 1, .state = STATE_DEAD};
	trace.nr_threads = 2;
	assert_text("Process 4242: ruby 9.8.7\n"
		    "2 threads, not paused\n"
		    "\n"
		    "Thread state unknown\n"
		    "    ?:in 'open' Shop#open\n"
		    "\n"
		    "Thread 1 dead\n"
		    "    (no frames)\n");
}

/* Whose word the version is, where it is not that of Ruby's own constants. */
static void test_version_sources(void **state)
{
	(void)state;
	trace.nr_threads = 0;
	trace.pauses = 0;
	trace.version_source = VERSION_IN_MEMORY;
	assert_text("Process 4242: ruby 9.8.7 (a test) (found in the core's memory)\n0 threads, not paused\n");
	trace.ruby_description = NULL;
	trace.version_source = VERSION_BY_NAME;
	assert_text("Process 4242: ruby 9.8.7 (from the name of its libruby)\n0 threads, not paused\n");
	trace.version_source = VERSION_OF_LAYOUT;
	assert_text("Process 4242: ruby 9.8.7 (from the layout)\n0 threads, not paused\n");
	trace.version_source = VERSION_GIVEN;
	assert_text("Process 4242: ruby 9.8.7 (as given)\n0 threads, not paused\n");
	trace.version_source = VERSION_FITS;
	trace.ruby_version = NULL;
	trace.versions_fit[0] = "9.8.7";
	trace.versions_fit[1] = "9.8.0 9.8.6";
	trace.versions_fit[2] = "9.7.0 9.7.1";
	trace.nr_versions_fit = 3;
	assert_text("Process 4242: ruby 9.8.7, 9.8.0 to 9.8.6 or 9.7.0 to 9.7.1 (the core does not name the "
		    "release: all these layouts fit, and show the same stacks)\n0 threads, not paused\n");
}

static void test_nearest(void **state)
{
	json_t *root;

	(void)state;
	trace.nr_threads = 0;
	trace.pauses = 0;
	trace.layout_source = LAYOUT_NEAREST;
	trace.layout_releases = "9.8.3 9.8.6";
	assert_text("Process 4242: ruby 9.8.7 (a test)\n0 threads, not paused\n"
		    "Layout: of 9.8.3 to 9.8.6, the nearest to 9.8.7; it was not made for this release\n");
	root = json();
	assert_member(json_object_get(root, "layout"), "source", "nearest");
	assert_member(json_object_get(root, "layout"), "releases", "9.8.3 9.8.6");
	json_decref(root);
	trace.layout_releases = "9.8.6";
	assert_line("Layout: of 9.8.6, the nearest to 9.8.7; it was not made for this release");
}

static void test_json_of_versions_that_fit(void **state)
{
	json_t *root, *fit;

	(void)state;
	trace.version_source = VERSION_FITS;
	trace.ruby_version = NULL;
	trace.versions_fit[0] = "9.8.7";
	trace.versions_fit[1] = "9.8.0 9.8.6";
	trace.nr_versions_fit = 2;
	root = json();
	fit = json_object_get(root, "ruby_versions_fit");
	assert_true(json_is_null(json_object_get(root, "ruby_version")));
	assert_member(root, "ruby_version_source", "fits");
	assert_int_equal(json_array_size(fit), 2);
	assert_string_equal(json_string_value(json_array_get(fit, 0)), "9.8.7");
	assert_string_equal(json_string_value(json_array_get(fit, 1)), "9.8.0 9.8.6");
	json_decref(root);
}

static void test_frames(void **state)
{
	(void)state;
	frames[1] = frames[0];
	frames[1].label = "block (2 levels) in open";
	frames[1].name = "block (2 levels) in Shop#open";
	frames[1].line = -3;
	frames[2] = frames[0];
	frames[2].kind = TRACE_CFUNC;
	frames[2].label = frames[2].name = "Integer#times";
	frames[3] =
	    (struct trace_frame){.kind = TRACE_UNREADABLE, .address = 0x7f00dead0010, .reason = REASON_NOT_CODE};
	frames[4] = frames[0];
	frames[4].label = "<main>";
	frames[4].name = "<main>";
	frames[4].line = 0;
	threads[0].nr_frames = 5;
	threads[0].verdict = VERDICT_TORN;
	threads[0].reason = REASON_NOT_CODE;
	assert_text("Process 4242: ruby 9.8.7 (a test)\n"
		    "1 thread, paused for 123 us\n"
		    "\n"
		    "Thread 4242 (main) running [torn: a frame's iseq pointer does not point to code]\n"
		    "    shop.rb:12:in 'open' Shop#open\n"
		    "    shop.rb:-3:in 'block (2 levels) in open' Shop#open\n"
		    "    shop.rb:12:in 'Integer#times' (C)\n"
		    "    [unreadable frame at 0x7f00dead0010: a frame's iseq pointer does not point to code]\n"
		    "    shop.rb:0:in '<main>'\n");
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

static void test_ractors(void **state)
{
	(void)state;
	threads[1] = threads[0];
	threads[1].main = false;
	threads[1].tid = 4243;
	threads[1].name = "worker";
	trace.nr_threads = 2;
	assert_line("Thread 4243 \"worker\" running");
	threads[1].ractor = 3; /* then it is told of all */
	assert_line("Thread 4242 (main) ractor 1 running");
	assert_line("Thread 4243 \"worker\" ractor 3 running");
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

static void test_collection(void **state)
{
	(void)state;
	trace.gc_running = true; /* but not known */
	assert_line("1 thread, paused for 123 us");
	trace.gc_known = true;
	assert_line("1 thread, paused for 123 us, GC is running");
}

/* A name is any text at all, and must not drive the terminal. */
static void test_control_characters(void **state)
{
	(void)state;
	frames[0].label = "\x1b[31mred\x07";
	frames[0].name = "A\x7f#\x1b[31mred\x07";
	frames[0].path = "a\nb\r\tc\xc2\x9b.rb";
	threads[0].name = "\x01\xc2\x80\xc2\xa0\xe3\x81\x82\xff";
	trace.ruby_description = "ruby\x1b]0;title\x07";
	/* U+00A0 and U+3042 are characters like any other; U+0080 to U+009F are not. */
	assert_text("Process 4242: ruby\\x1B]0;title\\x07\n"
		    "1 thread, paused for 123 us\n"
		    "\n"
		    "Thread 4242 (main) \"\\x01\\xC2\\x80\xc2\xa0\xe3\x81\x82\\xFF\" running\n"
		    "    a\\x0Ab\\x0D\\x09c\\xC2\\x9B.rb:12:in '\\x1B[31mred\\x07' A\\x7F#\\x1B[31mred\\x07\n");
}

/* The same names in JSON: nothing that drives a terminal is there as it is, and what is read back is what was written.
 */
static void test_json_has_no_control_characters(void **state)
{
	static char name[] = "\x1b\x7f\xc2\x80\xc2\x9b\xc2\xa0\xe2\x80\xae\xe2\x80\xa8\xe3\x81\x82\"\\";
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	json_t *root;

	(void)state;
	frames[0].label = frames[0].name = frames[0].path = threads[0].name = trace.ruby_description = name;
	assert_true(render_json(&trace, stream));
	fclose(stream);
	assert_non_null(strstr(text, "\\u001B\\u007f\\u0080\\u009b\xc2\xa0\\u202e\\u2028\xe3\x81\x82\\\"\\\\"));
	for (size_t i = 0; i < size;) {
		uint32_t point;

		assert_true(text_control(text + i, size - i, &point) == 0 || (i + 1 == size && text[i] == '\n'));
		i += text_character((const uint8_t *)text + i, size - i);
	}
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_member(root, "ruby_description", name);
	json_decref(root);
	free(text);
}

/* With colour it is the same text, and nothing stays coloured at the end of a line. */
static void test_colour(void **state)
{
	char *plain, *coloured, *to;
	bool on = false;

	(void)state;
	frames[1] = frames[0];
	frames[1].kind = TRACE_CFUNC;
	frames[2] = (struct trace_frame){.kind = TRACE_UNREADABLE, .reason = REASON_NOT_CODE};
	threads[0].nr_frames = 3;
	threads[0].verdict = VERDICT_TORN;
	threads[0].reason = REASON_NOT_CODE;
	threads[1] = (struct trace_thread){.ractor = 2};
	trace.nr_threads = 2;
	trace.gc_known = trace.gc_running = true;
	plain = text_of(false);
	coloured = text_of(true);
	assert_null(strchr(plain, 0x1b));
	assert_non_null(strstr(coloured, "\x1b[36mshop.rb:12\x1b[0m:in \x1b[33m'open'\x1b[0m"));
	to = coloured;
	for (const char *at = coloured; *at; at++) {
		if (*at == 0x1b) {
			size_t length = strspn(at + 2, "0123456789");

			assert_int_equal(at[1], '[');
			assert_int_equal(at[2 + length], 'm');
			on = at[2] != '0';
			at += 2 + length;
			continue;
		}
		assert_false(on && *at == '\n');
		*to++ = *at;
	}
	*to = '\0';
	assert_false(on);
	assert_string_equal(coloured, plain);
	free(plain);
	free(coloured);
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

static void test_json(void **state)
{
	json_t *root = json(), *thread = first(root, "threads"), *frame = first(thread, "frames");

	(void)state;
	assert_number(root, "schema_version", 1);
	assert_member(root, "tool", "rbdump " RBDUMP_VERSION);
	assert_number(root, "pid", 4242);
	assert_member(root, "ruby_version", "9.8.7");
	assert_member(root, "ruby_version_source", "ruby");
	assert_true(json_is_null(json_object_get(root, "ruby_versions_fit")));
	assert_member(root, "ruby_description", "ruby 9.8.7 (a test)");
	assert_member(root, "arch", "x86_64");
	assert_member(root, "mode", "paused");
	assert_true(json_real_value(json_object_get(root, "pause_us")) == 123.4);
	assert_number(root, "pauses", 1);
	assert_member(json_object_get(root, "layout"), "source", "version");
	assert_member(json_object_get(root, "layout"), "releases", NULL);
	assert_member(json_object_get(root, "layout"), "file", "/a/file.layout");
	assert_member(json_object_get(root, "layout"), "build_id", "00ff");
	assert_member(json_object_get(root, "gc"), "running", NULL);
	assert_int_equal(json_array_size(json_object_get(root, "threads")), 1);
	assert_number(thread, "tid", 4242);
	assert_number(thread, "ractor", 1);
	assert_member(thread, "name", NULL);
	assert_true(json_is_true(json_object_get(thread, "main")));
	assert_member(thread, "verdict", "complete");
	assert_member(thread, "reason", NULL);
	assert_member(thread, "fiber", NULL);
	assert_int_equal(json_array_size(json_object_get(thread, "frames")), 1);
	assert_member(frame, "kind", "ruby");
	assert_member(frame, "label", "open");
	assert_member(frame, "name", "Shop#open");
	assert_member(frame, "path", "shop.rb");
	assert_member(frame, "absolute_path", "/srv/shop.rb");
	assert_number(frame, "line", 12);
	json_decref(root);
}

static void test_json_of_what_is_missing(void **state)
{
	json_t *root, *thread, *frame;

	(void)state;
	trace.layout_file = trace.layout_build_id = trace.ruby_description = NULL;
	trace.layout_source = LAYOUT_GENERATED;
	trace.pauses = 0;
	trace.gc_known = true;
	threads[0] = (struct trace_thread){.ractor = 2,
					   .verdict = VERDICT_TRUNCATED,
					   .reason = REASON_FRAME_UNREADABLE,
					   .fiber = 0x7f0012345678,
					   .frames = frames,
					   .nr_frames = 2};
	frames[0].kind = TRACE_CFUNC;
	frames[0].has_line = false;
	frames[0].path = frames[0].absolute_path = NULL;
	frames[1] = (struct trace_frame){
	    .kind = TRACE_UNREADABLE, .address = 0xffffffffffffffc0, .reason = REASON_FRAME_UNREADABLE};
	root = json();
	thread = first(root, "threads");
	assert_member(root, "mode", "unpaused");
	assert_member(root, "pause_us", NULL);
	assert_number(root, "pauses", 0);
	assert_member(root, "ruby_description", NULL);
	assert_member(json_object_get(root, "layout"), "source", "generated");
	assert_member(json_object_get(root, "layout"), "file", NULL);
	assert_member(json_object_get(root, "layout"), "build_id", NULL);
	assert_true(json_is_false(json_object_get(json_object_get(root, "gc"), "running")));
	assert_member(thread, "tid", NULL);
	assert_member(thread, "verdict", "truncated");
	assert_member(thread, "reason", "frame-unreadable");
	assert_member(json_object_get(thread, "fiber"), "id", "0x7f0012345678");
	assert_member(json_object_get(thread, "fiber"), "state", NULL);
	assert_true(json_is_true(json_object_get(json_object_get(thread, "fiber"), "current")));
	frame = first(thread, "frames");
	assert_member(frame, "kind", "cfunc");
	assert_member(frame, "path", NULL);
	assert_member(frame, "absolute_path", NULL);
	assert_member(frame, "line", NULL);
	assert_null(json_object_get(frame, "address"));
	frame = json_array_get(json_object_get(thread, "frames"), 1);
	assert_member(frame, "kind", "unreadable");
	assert_member(frame, "label", NULL);
	assert_member(frame, "name", NULL);
	assert_member(frame, "line", NULL);
	assert_member(frame, "address", "0xffffffffffffffc0");
	assert_member(frame, "reason", "frame-unreadable");
	json_decref(root);
}

/* What comes back is what went in: quotes, control characters, every length of UTF-8; and lines of any size. */
static void test_json_strings(void **state)
{
	static const char text[] =
	    "\"\\/\b\f\n\r\t\x01\x1b\x7f\xc2\x80\xc2\x9b\xc2\xa0\xd8\x9c\xe2\x80\xae\xe3\x81\x82\xf0\x9f\x98\x80</"
	    "script>";
	json_t *root, *frame;

	(void)state;
	frames[0].label = frames[0].name = frames[0].path = text;
	frames[0].line = INT64_MIN;
	threads[0].name = text;
	root = json();
	frame = first(first(root, "threads"), "frames");
	assert_member(first(root, "threads"), "name", text);
	assert_member(frame, "label", text);
	assert_member(frame, "path", text);
	assert_number(frame, "line", INT64_MIN);
	json_decref(root);
	frames[0].line = 0;
	root = json();
	assert_number(first(first(root, "threads"), "frames"), "line", 0);
	json_decref(root);
}

static void test_json_without_threads(void **state)
{
	json_t *root;

	(void)state;
	trace.nr_threads = 0;
	root = json();
	assert_true(json_is_array(json_object_get(root, "threads")));
	assert_int_equal(json_array_size(json_object_get(root, "threads")), 0);
	json_decref(root);
}

static void test_json_cannot_be_written(void **state)
{
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	assert_false(render_json(&trace, full));
	fclose(full);
}

static void test_exit_status(void **state)
{
	(void)state;
	assert_int_equal(trace_exit_status(&trace), EXIT_COMPLETE);
	trace.nr_threads = 2;
	for (enum verdict verdict = VERDICT_TRUNCATED; verdict <= VERDICT_UNREADABLE; verdict++) {
		threads[1].verdict = verdict;
		assert_int_equal(trace_exit_status(&trace), EXIT_PARTIAL);
	}
}

/* Strings that a trace keeps stay where they are, and as they were. */
static void test_trace_strings(void **state)
{
	struct trace *kept = trace_create();
	const char *strings[1000];
	char *longest = malloc(300000);

	(void)state;
	assert_non_null(kept);
	assert_non_null(longest);
	assert_null(trace_string(kept, NULL));
	for (size_t i = 0; i < 1000; i++) {
		char text[256];

		snprintf(text, sizeof(text), "%0*zu", (int)(i % 200 + 4), i);
		strings[i] = trace_string(kept, text);
		assert_string_equal(strings[i], text);
	}
	memset(longest, 'x', 299999);
	longest[299999] = '\0';
	assert_string_equal(trace_string(kept, longest), longest);
	assert_string_equal(trace_string(kept, ""), "");
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(strtol(strings[i], NULL, 10), i);
	free(longest);
	trace_destroy(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_text, set_up),
	    cmocka_unit_test_setup(test_text_of_what_is_missing, set_up),
	    cmocka_unit_test_setup(test_version_sources, set_up),
	    cmocka_unit_test_setup(test_nearest, set_up),
	    cmocka_unit_test_setup(test_json_of_versions_that_fit, set_up),
	    cmocka_unit_test_setup(test_frames, set_up),
	    cmocka_unit_test_setup(test_states, set_up),
	    cmocka_unit_test_setup(test_ractors, set_up),
	    cmocka_unit_test_setup(test_missing_threads, set_up),
	    cmocka_unit_test_setup(test_collection, set_up),
	    cmocka_unit_test_setup(test_fibers, set_up),
	    cmocka_unit_test_setup(test_control_characters, set_up),
	    cmocka_unit_test_setup(test_json_has_no_control_characters, set_up),
	    cmocka_unit_test_setup(test_colour, set_up),
	    cmocka_unit_test_setup(test_core, set_up),
	    cmocka_unit_test_setup(test_window, set_up),
	    cmocka_unit_test_setup(test_json, set_up),
	    cmocka_unit_test_setup(test_json_of_what_is_missing, set_up),
	    cmocka_unit_test_setup(test_json_strings, set_up),
	    cmocka_unit_test_setup(test_json_without_threads, set_up),
	    cmocka_unit_test_setup(test_json_cannot_be_written, set_up),
	    cmocka_unit_test_setup(test_exit_status, set_up),
	    cmocka_unit_test(test_trace_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
