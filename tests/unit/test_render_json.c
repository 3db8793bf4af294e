/*
 * The JSON that is printed of a trace, as a parser reads it: its members, null for what is missing, and strings of any
 * characters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "render/render.h"
#include "synthetic_trace.h"
#include "target/call.h"

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

/* A name is any text: nothing that drives a terminal is there as it is, and what is read back is what was written. */
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

/* How many allocations jansson has asked for, and which of them fails: the others succeed, also the later ones. */
static size_t allocations, failing;

static void *allocate_but_one(size_t size)
{
	return ++allocations == failing ? NULL : malloc(size);
}

/* What is written while one allocation of jansson fails, 0: none; NULL if that failed. The caller frees it. */
static char *written_without(const struct merged *merged, size_t one)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	bool written;

	assert_non_null(stream);
	json_set_alloc_funcs(allocate_but_one, free);
	allocations = 0;
	failing = one;
	written = merged ? render_merged_json(merged, 2, 0.5, stream) : render_json(&trace, stream);
	json_set_alloc_funcs(malloc, free);
	fclose(stream);
	if (written)
		return text;
	free(text);
	return NULL;
}

/*
 * Whatever there is no memory for: the output is whole, or it is an error. And a failure is not remembered for longer than it
 * matters. Returns how many allocations it takes.
 */
static size_t assert_whole_or_failed(const struct merged *merged)
{
	char *whole = written_without(merged, 0), *text;
	const size_t count = allocations;

	assert_non_null(whole);
	for (size_t one = 1; one <= count; one++) {
		text = written_without(merged, one);
		if (text)
			assert_string_equal(text, whole);
		free(text);
	}
	text = written_without(merged, 0);
	assert_string_equal(text, whole);
	free(text);
	free(whole);
	return count;
}

/* Each part of the JSON, of which none may be missing unseen. */
static void test_json_without_memory(void **state)
{
	static char kind[] = "pipe";
	static const char *words[] = {"ruby", "a.rb"};
	struct trace_local locals[] = {{.name = "count", .value = {.text = "1", .kind = "Integer"}}};
	struct trace_line lines[] = {{.number = 12, .text = "open"}};
	struct trace_details details = {.has_self = true,
					.self = {.text = "#<Shop>", .kind = "Shop"},
					.wants_locals = true,
					.locals = locals,
					.nr_locals = 1,
					.wants_source = true,
					.lines = lines,
					.nr_lines = 1};
	struct trace_hold holds[] = {{.lock = 0x1000, .object = 0x2000, .class_name = "Thread::Mutex"}};
	struct trace_arguments arguments = {.line = words, .nr_line = 2, .names = words, .nr_names = 1};
	struct fact items[] = {{.name = "fd", .kind = FACT_NUMBER, .number = 5}};
	struct facts item = {.list = items, .count = 1};
	struct fact facts[] = {{.name = "kind", .kind = FACT_TEXT, .text = kind},
			       {.name = "ends", .kind = FACT_LIST, .items = &item, .nr_items = 1}};
	struct call_fd descriptors[] = {{.fd = 4, .facts = {.list = facts, .count = 2}}};
	struct call call = {.name = "read", .action = "reads", .fds = descriptors, .nr_fds = 1};
	size_t entries[] = {0};
	struct trace_deadlock deadlocks[] = {{.entries = entries, .count = 1}};
	unsigned int looks_of_stack[] = {1, 2};
	struct merged_stack stacks[] = {{.trace = &trace, .as = &threads[0], .looks = looks_of_stack, .nr_looks = 2}};
	struct merged_thread merged_threads[] = {
	    {.as = &threads[0], .nr_looks = 2, .stacks = stacks, .nr_stacks = 1, .states = {[STATE_RUNNING] = 2}}};
	struct merged_look looks[] = {{.number = 1}, {.number = 2}};
	const struct merged merged = {
	    .last = &trace, .looks = looks, .nr_looks = 2, .threads = merged_threads, .nr_threads = 1};
	struct trace_gone gone[] = {{.id = 0x3000, .tid = 7, .name = "gone"}};

	(void)state;
	assert_true(assert_whole_or_failed(NULL) > 20);
	frames[0].details = &details;
	threads[0].holds = holds;
	threads[0].nr_holds = 1;
	threads[0].call = &call;
	threads[0].wait = (struct trace_wait){.kind = WAIT_MUTEX, .object = 0x2000, .holder_state = HOLDER_KNOWN};
	threads[0].progress = (struct trace_progress){.moved = MOVED_YES, .has_cpu = true, .cpu_ns = 5};
	trace.arguments = &arguments;
	trace.waits_of_one_moment = true;
	trace.deadlocks = deadlocks;
	trace.nr_deadlocks = 1;
	trace.look = (struct trace_look){.number = 2, .before = 1, .gone = gone, .nr_gone = 1};
	assert_true(assert_whole_or_failed(NULL) > 100);
	assert_true(assert_whole_or_failed(&merged) > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_json_of_versions_that_fit, set_up_trace),
	    cmocka_unit_test_setup(test_json_has_no_control_characters, set_up_trace),
	    cmocka_unit_test_setup(test_json, set_up_trace),
	    cmocka_unit_test_setup(test_json_of_what_is_missing, set_up_trace),
	    cmocka_unit_test_setup(test_json_strings, set_up_trace),
	    cmocka_unit_test_setup(test_json_without_threads, set_up_trace),
	    cmocka_unit_test_setup(test_json_cannot_be_written, set_up_trace),
	    cmocka_unit_test_setup(test_json_without_memory, set_up_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
