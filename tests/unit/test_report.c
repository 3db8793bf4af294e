/* Collapsed stacks and the summary, of names that nobody would choose; where a report is written to. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/report.h"

static struct profile *new_profile(const char *mode)
{
	struct profile *profile = profile_create();
	const struct profile_process process = {.pid = 100, .command = profile_string(profile, "ruby")};
	const struct profile_thread thread = {.tid = 100, .main = true, .ractor = 1};

	profile_add_process(profile, &process);
	profile_add_thread(profile, &thread);
	profile->rate = 99;
	profile->mode = profile_string(profile, mode);
	profile->tool = profile_string(profile, "rbdump 0");
	return profile;
}

/* Adds a span of so many microseconds in a stack of these methods, outermost first. */
static void add_span(struct profile *profile, uint64_t us, const char *const *names, size_t count)
{
	struct profile_span span = {
	    .start_ns = profile->duration_ns, .weight_ns = us * 1000, .count = 1, .syscall = -1};

	for (size_t i = 0; i < count; i++) {
		struct profile_function function = {.kind = PROFILE_RUBY};

		function.name = function.label = profile_string(profile, names[i]);
		/* Lines and files make another one of it, that is called the same. */
		function.first_line = (int64_t)profile->nr_functions;
		span.node = profile_add_node(profile, span.node,
					     profile_add_frame(profile, profile_add_function(profile, &function), 1));
	}
	assert_true(profile_add_span(profile, &span));
	profile->duration_ns += us * 1000;
}

#define SPAN(profile, us, ...)                                                                                         \
	add_span(profile, us, (const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static char *written(format_write *format, const struct profile *profile, const struct format_options *options)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	assert_true(format(profile, options, stream));
	assert_int_equal(fclose(stream), 0);
	assert_int_equal(strlen(text), length);
	return text;
}

static void assert_collapsed(const struct profile *profile, const struct profile *before, const char *expected)
{
	const struct format_options options = {.by = "wall", .title = "t", .before = before};
	char *text = written(format_collapsed, profile, &options);

	assert_string_equal(text, expected);
	free(text);
}

static void test_collapsed(void **state)
{
	struct profile *profile = new_profile("paused"), *before = new_profile("paused");

	(void)state;
	assert_collapsed(profile, NULL, "");
	SPAN(profile, 5, "main", "b");
	SPAN(profile, 3, "main", "a");
	SPAN(profile, 2, "main", "b");
	/* Less than half a microsecond, and no stack. */
	SPAN(profile, 0, "main", "c");
	SPAN(profile, 7, "main");
	assert_collapsed(profile, NULL, "main 7\nmain;a 3\nmain;b 7\n");
	SPAN(before, 1, "main", "a");
	SPAN(before, 4, "gone");
	assert_collapsed(profile, before, "gone 4 0\nmain 0 7\nmain;a 1 3\nmain;b 0 7\n");
	profile_destroy(profile);
	profile_destroy(before);
}

/* Processes with these pids, each of which works for so many microseconds. */
static struct profile *workers(pid_t first, int count, uint64_t us)
{
	struct profile *profile = profile_create();

	for (int i = 0; i < count; i++) {
		const struct profile_process process = {.pid = first + i, .command = profile_string(profile, "ruby 3")};
		const struct profile_thread thread = {.tid = first + i, .process = (uint32_t)i, .main = true};

		profile_add_process(profile, &process);
		profile_add_thread(profile, &thread);
		SPAN(profile, us, "work");
		profile->spans[profile->nr_spans - 1].thread = (uint32_t)i;
	}
	profile->mode = profile_string(profile, "paused");
	return profile;
}

/* The processes of two recordings have different pids, and may be of different number. */
static void test_two_recordings_of_several_processes(void **state)
{
	for (int count = 1; count <= 3; count++) {
		struct profile *before = workers(100, count, 5), *after = workers(2000, 2, 7);
		struct format_options options = {.by = "wall", .title = "t", .before = before};
		char expected[64], *text;

		(void)state;
		snprintf(expected, sizeof(expected), "work %d 14\n", 5 * count);
		assert_collapsed(after, before, expected);
		text = written(format_flamegraph, after, &options);
		assert_null(strstr(text, "ruby 3 "));
		free(text);
		options.threads = true;
		text = written(format_flamegraph, after, &options);
		assert_null(strstr(text, "thread 2"));
		assert_non_null(strstr(text, "thread (main)"));
		free(text);
		text = written(format_collapsed, after, &options);
		snprintf(expected, sizeof(expected), "thread (main);work %d 14\n", 5 * count);
		assert_string_equal(text, expected);
		free(text);
		assert_collapsed(after, NULL, "ruby 3 2000;work 7\nruby 3 2001;work 7\n");
		profile_destroy(before);
		profile_destroy(after);
	}
}

/* One line a stack, one semicolon between two frames, whatever methods are called. */
static void test_hostile_names(void **state)
{
	struct profile *profile = new_profile("paused");

	(void)state;
	SPAN(profile, 1, "");
	SPAN(profile, 2, "", "");
	SPAN(profile, 3, "", "x");
	SPAN(profile, 4, "x", "");
	SPAN(profile, 5, "a;b\nc\td\x7f");
	SPAN(profile, 6,
	     "\xc2\x9b"
	     "31m\xc2\x85\xc2\xa0\xc3\xa9");
	SPAN(profile, 7, ";");
	assert_collapsed(profile, NULL,
			 " 1\n: 7\n; 2\n;x 3\n\\xC2\\x9B31m\\xC2\\x85\xc2\xa0\xc3\xa9 6\n"
			 "a:b\\x0Ac\\x09d\\x7F 5\nx; 4\n");
	profile_destroy(profile);
}

/* JSON of a recording does not drive a terminal, and is the same text to who reads it. */
static void test_hostile_names_in_json(void **state)
{
	static const char name[] = "\x1b[2J\x7f\xc2\x9b\xc2\xa0\u202e\u2028";
	struct profile *profile = new_profile("paused");
	char *text;

	(void)state;
	SPAN(profile, 1000, name);
	text = written(format_speedscope, profile, &(struct format_options){.by = "wall", .title = name});
	for (const char *at = text; *at; at++) {
		assert_true(*at == '\n' || ((unsigned char)*at >= 0x20 && *at != 0x7f));
		assert_false(at[0] == '\xc2' && (unsigned char)at[1] < 0xa0);
	}
	assert_null(strstr(text, "\u202e"));
	assert_null(strstr(text, "\u2028"));
	assert_non_null(strstr(text, "\"\\u001b[2J\\u007f\\u009b\xc2\xa0\\u202e\\u2028\""));
	free(text);
	profile_destroy(profile);
}

static void test_summary(void **state)
{
	struct profile *profile = new_profile("\x1b]0;paused\n"), *before = new_profile("paused");
	struct format_options options = {.by = "wall", .title = "a\x1b[31m\xc2\x9b.rbdump"};

	(void)state;
	SPAN(profile, 3000000, "\x1b[2J", "work\n");
	SPAN(profile, 1000000, "\x1b[2J");
	SPAN(before, 1000000, "work\n");
	profile->counts = (struct profile_counts){.samples = 9, .late = 3, .missed = 2, .skipped = 1};
	for (int diff = 0; diff < 2; diff++) {
		char *text;

		options.before = diff ? before : NULL;
		text = written(format_summary, profile, &options);
		for (const char *at = text; *at; at++)
			assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
		assert_null(strstr(text, "\xc2\x9b"));
		assert_non_null(strstr(text, "\\x1B]0;paused\\x0A, 1 process\n"));
		assert_non_null(strstr(text, " unreadable; late 3 (missed: 2) of 12 due (25.0 %)\n"));
		assert_non_null(strstr(text, diff ? "  -25.0  100.0 %   75.0 %   work\\x0A\n"
						  : "    3.000 s  75.0 %     3.000 s  75.0 %  work\\x0A\n"));
		if (!diff)
			assert_non_null(strstr(text, "    1.000 s  25.0 %     1.000 s  25.0 %  \\x1B[2J\n"));
		/* Without a file, as a C function: the line is its caller's. */
		if (!diff)
			assert_non_null(strstr(text, "    3.000 s  75.0 %  work\\x0A  called at line 1\n"));
		free(text);
	}
	profile_destroy(profile);
	profile_destroy(before);
}

/* A disk that is full is told; so is a file that cannot be. */
static void test_not_written(void **state)
{
	struct profile *profile = new_profile("paused");
	struct report_options options = {.output = "/dev/full"};
	struct error *error;

	(void)state;
	SPAN(profile, 5, "main");
	for (const char *formats[] = {"flamegraph", "collapsed", "speedscope", "pprof", "firefox", "callgrind", "json",
				      "summary", NULL},
			**name = formats;
	     *name; name++) {
		options.format = report_format_find(*name);
		assert_non_null(options.format);
		error = report_render(&options, "t", profile, NULL);
		assert_non_null(error);
		assert_int_equal(error->status, EXIT_FAILED);
		assert_string_equal(error->message, "/dev/full cannot be written: No space left on device");
		error_destroy(error);
	}
	options.output = "/nonexistent/x";
	error = report_render(&options, "t", profile, NULL);
	assert_string_equal(error->message, "/nonexistent/x cannot be written: No such file or directory");
	error_destroy(error);
	options.output = "/dev/null";
	assert_null(report_render(&options, "t", profile, NULL));
	assert_null(report_format_find("raw"));
	profile_destroy(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_collapsed),	  cmocka_unit_test(test_two_recordings_of_several_processes),
	    cmocka_unit_test(test_hostile_names), cmocka_unit_test(test_hostile_names_in_json),
	    cmocka_unit_test(test_summary),	  cmocka_unit_test(test_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
