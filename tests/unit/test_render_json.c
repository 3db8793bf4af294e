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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
