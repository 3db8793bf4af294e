/* Versions of Ruby as numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/releases.h"
#include "layout/version.h"

static struct version parsed(const char *text)
{
	struct version version;

	assert_true(version_parse(text, &version));
	return version;
}

static void test_range_words(void **state)
{
	char words[RELEASES_WORDS];

	(void)state;
	assert_string_equal(releases_words("2.0.0p195 2.0.0p481", words), "2.0.0p195 to 2.0.0p481");
	assert_string_equal(releases_words("3.3.0", words), "3.3.0");
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

static void test_patch_level(void **state)
{
	static const char *const none[] = {"",
					   "ruby 3.4.5 (2025-07-16 revision 20cda200d3) +PRISM [x86_64-linux]",
					   "ruby 2.0.0dev (2012-11-01) [x86_64-linux]",
					   "ruby 2.0.0p",
					   "ruby 2.0.0p-1 (2013-02-24)",
					   "ruby 2.0.0p12345 (2013-02-24)",
					   "ruby 2.0.0p648",
					   "Ruby 2.0.0p648 (2015-12-16)",
					   "jruby 2.0.0p648 (2015-12-16)"};
	unsigned int level = 7;

	(void)state;
	assert_true(version_patch_level("ruby 2.0.0p0 (2013-02-24) [x86_64-linux]", &level));
	assert_int_equal(level, 0);
	assert_true(version_patch_level("ruby 1.9.3p551 (2014-11-13 revision 48407) [x86_64-linux]", &level));
	assert_int_equal(level, 551);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(version_patch_level(none[i], &level));
}

static void test_levels(void **state)
{
	static const char *const wrong[] = {"",		"195",	     "195 ", "648 195", "195-648",
					    "195 648 ", "p195 p648", "-1 5", "0 12345"};
	struct version_levels levels;

	(void)state;
	assert_true(version_parse_levels("195 648", &levels));
	assert_int_equal(levels.first, 195);
	assert_int_equal(levels.last, 648);
	assert_true(version_parse_levels("0 0", &levels));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(version_parse_levels(wrong[i], &levels));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_range_words), cmocka_unit_test(test_parse), cmocka_unit_test(test_compare),
	    cmocka_unit_test(test_series),	cmocka_unit_test(test_range), cmocka_unit_test(test_patch_level),
	    cmocka_unit_test(test_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
