/* Errors: what is put in front of a message and behind it, and the static one, which nothing changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"

static void test_words(void **state)
{
	struct error *error = error_no_ruby("no \"%s\"", "Ruby");

	(void)state;
	error = error_prefix(error, "%s", "a file");
	error = error_append(error, "; looked at %d", 2);
	error = error_prefix(error, "100%%");
	assert_string_equal(error->message, "100%: a file: no \"Ruby\"; looked at 2");
	assert_int_equal(error->status, EXIT_NO_RUBY);
	assert_true(error->no_ruby);
	error_set_status(error, EXIT_FAILED);
	assert_int_equal(error->status, EXIT_FAILED);
	error_destroy(error);
}

static void test_none(void **state)
{
	(void)state;
	assert_null(error_prefix(NULL, "%s", "a file"));
	assert_null(error_append(NULL, "%s", "a file"));
	error_set_status(NULL, EXIT_NO_RUBY);
	error_destroy(NULL);
}

static void test_no_memory(void **state)
{
	struct error *error = error_no_memory();

	(void)state;
	assert_ptr_equal(error_prefix(error, "%s", "a file"), error);
	assert_ptr_equal(error_append(error, "%s", "a file"), error);
	error_set_status(error, EXIT_NO_RUBY);
	error_destroy(error);
	assert_string_equal(error->message, "out of memory");
	assert_int_equal(error->status, EXIT_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_words),
	    cmocka_unit_test(test_none),
	    cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
