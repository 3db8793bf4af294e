/* Which stacks an oracle calls legal, and values that would never match. More files that are none are offered to the
 * verb itself (test_experiment_refusals.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "experiment/oracle.h"

static const char text[] = "{\"schema_version\": 1, \"roots\": [\"<main>\"], \"frames\": {"
			   "\"<main>\": {\"calls\": {\"9\": [\"A#m\"]}},"
			   "\"A#m\": {\"lines\": [1, 2, 3], \"calls\": {\"2\": [\"A#n\", \"Array#each\"]}},"
			   "\"A#n\": {\"lines\": [5]},"
			   "\"Array#each\": {\"calls\": {\"*\": [\"A#n\"]}}}}";

static int set_up(void **state)
{
	char path[] = "/tmp/rbdump-oracle-XXXXXX";
	struct error *error;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	error = oracle_read(path, (struct oracle **)state);
	unlink(path);
	assert_null(error);
	return 0;
}

static void assert_refused(const char *roots, const char *frame)
{
	char path[] = "/tmp/rbdump-oracle-XXXXXX";
	struct oracle *oracle = NULL;
	struct error *error;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "{\"schema_version\": 1, \"roots\": %s, \"frames\": {\"a\": %s}}", roots, frame) > 0);
	close(fd);
	error = oracle_read(path, &oracle);
	unlink(path);
	if (!error)
		fail_msg("taken: roots %s, frame %s", roots, frame);
	assert_null(oracle);
	assert_int_equal(error->status, EXIT_FAILED);
	error_destroy(error);
}

static int tear_down(void **state)
{
	oracle_destroy(*state);
	return 0;
}

static struct trace_frame ruby(const char *name, int64_t line)
{
	return (struct trace_frame){.kind = TRACE_RUBY, .name = name, .has_line = true, .line = line};
}

static void test_judging(void **state)
{
	const struct oracle *oracle = *state;
	struct trace_frame stack[] = {ruby("A#n", 5), ruby("A#m", 2), ruby("<main>", 9)};

	assert_int_equal(oracle_judge(oracle, stack, 3), ORACLE_LEGAL);
	assert_int_equal(oracle_judge(oracle, stack + 1, 2), ORACLE_LEGAL);
	assert_int_equal(oracle_judge(oracle, stack, 2), ORACLE_ROOT);
	assert_int_equal(oracle_judge(oracle, stack, 0), ORACLE_ROOT);
	/* A caller at a line where it calls somebody else, or nobody; the innermost where it has no line. */
	stack[1].line = 3;
	assert_int_equal(oracle_judge(oracle, stack, 3), ORACLE_LINE);
	stack[1].has_line = false;
	assert_int_equal(oracle_judge(oracle, stack, 3), ORACLE_LEGAL);
	stack[0].line = 6;
	assert_int_equal(oracle_judge(oracle, stack, 3), ORACLE_LINE);
	stack[0] = ruby("A#m", 1);
	assert_int_equal(oracle_judge(oracle, stack, 3), ORACLE_EDGE);
	stack[0].name = "A#x";
	assert_int_equal(oracle_judge(oracle, stack, 3), ORACLE_UNKNOWN);
	stack[0].name = NULL;
	assert_int_equal(oracle_judge(oracle, stack, 3), ORACLE_UNKNOWN);
}

/* The line of a C function is that of its caller, and says nothing of what it calls. */
static void test_c_functions(void **state)
{
	struct trace_frame stack[] = {ruby("A#n", 5), ruby("Array#each", 2), ruby("A#m", 2), ruby("<main>", 9)};

	stack[1].kind = TRACE_CFUNC;
	assert_int_equal(oracle_judge(*state, stack, 4), ORACLE_LEGAL);
	assert_int_equal(oracle_judge(*state, stack + 1, 3), ORACLE_LEGAL);
}

/* A name that is no text, a line that is no number: refused, since it would make legal stacks impossible. */
static void test_refused(void **state)
{
	static const char *const roots[] = {"[1]", "[null]", "{}"};
	static const char *const frames[] = {
	    "{\"lines\": [\"3\"]}",
	    "{\"lines\": [3.5]}",
	    "{\"lines\": 3}",
	    "{\"calls\": {\"x\": [\"a\"]}}",
	    "{\"calls\": {\"3 \": [\"a\"]}}",
	    "{\"calls\": {\"\": [\"a\"]}}",
	    "{\"calls\": {\"03\": [\"a\"]}}",
	    "{\"calls\": {\"3\": [3]}}",
	    "{\"calls\": {\"3\": \"a\"}}",
	};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_refused(roots[i], "{}");
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		assert_refused("[\"a\"]", frames[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_judging, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_c_functions, set_up, tear_down),
	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
