#include "synthetic_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "render/render.h"

struct trace_frame frames[8];
struct trace_thread threads[16];
struct trace trace;

int set_up_trace(void **state)
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

static char *text_in(struct render_style style)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	assert_non_null(stream);
	render_text(&trace, &style, stream);
	fclose(stream);
	return text;
}

char *text_of(bool colour)
{
	return text_in((struct render_style){.colour = colour});
}

char *text_of_all(void)
{
	return text_in((struct render_style){.all = true});
}

void assert_text(const char *expected)
{
	char *text = text_of(false);

	assert_string_equal(text, expected);
	free(text);
}

void assert_line(const char *line)
{
	char *text = text_of(false), *with_newlines;

	assert_true(asprintf(&with_newlines, "\n%s\n", line) > 0);
	if (!strstr(text, with_newlines))
		fail_msg("no line \"%s\" in:\n%s", line, text);
	free(with_newlines);
	free(text);
}

json_t *json(void)
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

json_t *first(const json_t *object, const char *key)
{
	return json_array_get(json_object_get(object, key), 0);
}

void assert_member(const json_t *object, const char *key, const char *expected)
{
	json_t *value = json_object_get(object, key);

	assert_non_null(value);
	if (expected)
		assert_string_equal(json_string_value(value), expected);
	else
		assert_true(json_is_null(value));
}

void assert_number(const json_t *object, const char *key, int64_t expected)
{
	json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	assert_true(json_integer_value(value) == expected);
}
