/* A trace: which exit status it leads to, and the strings that it keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "synthetic_trace.h"

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
	    cmocka_unit_test_setup(test_exit_status, set_up_trace),
	    cmocka_unit_test(test_trace_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
