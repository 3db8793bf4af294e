/* Versions of Ruby as numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layout/version.h"

static struct version parsed(const char *text)
{
	struct version version;

	assert_true(version_parse(text, &version));
	return version;
}

static void test_parse(void **state)
{
	static const char *const wrong[] = {"",	      "3",	   "3.3",    "3.3.",	"3.3.8.1",
					    "3.3.8 ", " 3.3.8",	   "3.3.08", "3.3.0x8", "3.5.0preview1",
					    "3.3.-1", "3.3.12345", "..",     "3..8"};
	struct version version = parsed("3.3.10");

	(void)state;
	assert_int_equal(version.major, 3);
	assert_int_equal(version.minor, 3);
	assert_int_equal(version.patch, 10);
	parsed("0.0.0");
	parsed("9999.9999.9999");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(version_parse(wrong[i], &version));
}

static void test_compare(void **state)
{
	static const char *const ordered[] = {"1.9.3", "2.0.0",	 "2.10.0", "3.3.0",
					      "3.3.9", "3.3.10", "3.4.0",  "10.0.0"};
	enum { COUNT = sizeof(ordered) / sizeof(ordered[0]) };

	(void)state;
	for (int i = 0; i < COUNT; i++)
		for (int j = 0; j < COUNT; j++) {
			struct version a = parsed(ordered[i]), b = parsed(ordered[j]);
			int order = version_compare(&a, &b);

			assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
		}
}

static void test_series(void **state)
{
	struct version a = parsed("3.3.0"), b = parsed("3.3.10"), c = parsed("3.4.0"), d = parsed("4.3.0");

	(void)state;
	assert_true(version_same_series(&a, &b));
	assert_false(version_same_series(&a, &c));
	assert_false(version_same_series(&a, &d));
}

static void test_range(void **state)
{
	static const char *const wrong[] = {"",
					    "3.3.0",
					    "3.3.0 ",
					    "3.3.0  3.3.1",
					    "3.3.1 3.3.0",
					    "3.3.0 3.4.0",
					    "3.3.0-3.3.10",
					    "3.3.0 3.3.1 3.3.2",
					    " 3.3.0",
					    "3.3.x 3.3.1",
					    "3.3.0 3.3.1x",
					    "3.3.0 4.3.0",
					    "333333333333333333333333.3.0 3.3.1"};
	struct version_range range;
	struct version version;

	(void)state;
	assert_true(version_parse_range("3.3.2 3.3.10", &range));
	version = parsed("3.3.1");
	assert_false(version_in_range(&version, &range));
	version = parsed("3.3.2");
	assert_true(version_in_range(&version, &range));
	version = parsed("3.3.10");
	assert_true(version_in_range(&version, &range));
	version = parsed("3.3.11");
	assert_false(version_in_range(&version, &range));
	version = parsed("3.4.5");
	assert_false(version_in_range(&version, &range));
	assert_true(version_parse_range("3.3.2 3.3.2", &range));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(version_parse_range(wrong[i], &range));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parse),
	    cmocka_unit_test(test_compare),
	    cmocka_unit_test(test_series),
	    cmocka_unit_test(test_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
