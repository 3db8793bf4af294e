/* A trace: which exit status it leads to, the strings that it keeps, and how much memory it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <malloc.h>

#include "base/error.h"
#include "synthetic_trace.h"
#include "target/call.h"

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

/* How many things of each kind the trace below has: so many that what malloc() adds hardly counts. */
#define THINGS 64

static void *things(size_t size)
{
	void *ret = calloc(THINGS, size);

	assert_non_null(ret);
	return ret;
}

static void add_frames(struct trace *to)
{
	to->threads->frames = things(sizeof(*to->threads->frames));
	to->threads->nr_frames = THINGS;
}

static void add_holds(struct trace *to)
{
	to->threads->holds = things(sizeof(*to->threads->holds));
	to->threads->nr_holds = THINGS;
}

static void add_details(struct trace *to)
{
	struct trace_details *details = calloc(1, sizeof(*details));

	assert_non_null(details);
	details->locals = things(sizeof(*details->locals));
	details->nr_locals = THINGS;
	details->lines = things(sizeof(*details->lines));
	details->nr_lines = THINGS;
	to->threads->frames->details = details;
}

static void add_call(struct trace *to)
{
	to->threads->call = calloc(1, sizeof(*to->threads->call));
	assert_non_null(to->threads->call);
}

static void add_descriptors(struct trace *to)
{
	to->threads->call->fds = things(sizeof(*to->threads->call->fds));
	to->threads->call->nr_fds = THINGS;
}

static void add_facts(struct trace *to)
{
	char path[1000];

	memset(path, 'x', sizeof(path));
	facts_add_bytes(&to->threads->call->facts, "path", path, sizeof(path));
	for (size_t i = 0; i < THINGS; i++) {
		struct facts *target = facts_add_item(&to->threads->call->fds->facts, "targets");

		assert_non_null(target);
		facts_add_bytes(target, "path", path, sizeof(path));
	}
}

static void add_gone(struct trace *to)
{
	to->look.gone = things(sizeof(*to->look.gone));
	to->look.nr_gone = THINGS;
}

static void add_arguments(struct trace *to)
{
	struct trace_arguments *arguments = calloc(1, sizeof(*arguments));

	assert_non_null(arguments);
	arguments->line = things(sizeof(*arguments->line));
	arguments->names = things(sizeof(*arguments->names));
	arguments->nr_line = arguments->nr_names = THINGS;
	to->arguments = arguments;
}

static void add_deadlocks(struct trace *to)
{
	to->deadlocks = things(sizeof(*to->deadlocks));
	to->nr_deadlocks = THINGS;
	to->deadlocks->entries = things(sizeof(*to->deadlocks->entries));
	to->deadlocks->count = THINGS;
}

static void add_string(struct trace *to)
{
	assert_non_null(trace_string(to, "a string"));
}

/* Whatever a trace owns counts: malloc() says how much that is, and adds at least 8 bytes to each piece. */
static void test_bytes(void **state)
{
	static void (*const parts[])(struct trace *) = {
	    add_frames, add_holds, add_details,	  add_call,	 add_descriptors,
	    add_facts,	add_gone,  add_arguments, add_deadlocks, add_string,
	};
	struct trace *whole = trace_create();
	size_t before, bytes;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	/* Its malloc() does not say how much it has given. */
	trace_destroy(whole);
	skip();
#endif
	assert_non_null(whole);
	assert_int_equal(trace_bytes(whole), sizeof(*whole));
	whole->threads = things(sizeof(*whole->threads));
	whole->nr_threads = THINGS;
	assert_int_equal(trace_bytes(whole), sizeof(*whole) + THINGS * sizeof(*whole->threads));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		bytes = trace_bytes(whole);
		before = mallinfo2().uordblks + mallinfo2().hblkhd;
		parts[i](whole);
		bytes = trace_bytes(whole) - bytes;
		before = mallinfo2().uordblks + mallinfo2().hblkhd - before;
		assert_in_range(bytes, before / 10 * 8, before);
	}
	trace_destroy(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_exit_status, set_up_trace),
	    cmocka_unit_test(test_trace_strings),
	    cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
