/* The text by which a Ruby without symbols is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "target/ruby_file.h"

static void test_versions(void **state)
{
	static const struct {
		const char *description, *version;
	} cases[] = {
	    {"ruby 3.4.5 (2025-07-16 revision 20cda200d3) +PRISM [x86_64-linux]", "3.4.5"},
	    {"ruby 2.7.4p191 (2021-07-07 revision a21a3b7d23) [x86_64-linux-gnu]", "2.7.4"},
	    {"ruby 1.9.3p551 (2014-11-13 revision 48407) [x86_64-linux]", "1.9.3"},
	    {"ruby 4.1.0dev (2026-01-02T03:04:05Z master 0123456789) [x86_64-linux]", "4.1.0"},
	    {"ruby 3.5.0preview1 (2025-04-18 master d06ec25be4) [x86_64-linux]", "3.5.0"},
	    {"ruby 12.34.567 (2025-07-16)", "12.34.567"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char version[16];

		assert_true(ruby_file_version(cases[i].description, version, sizeof(version)));
		assert_string_equal(version, cases[i].version);
	}
}

static void test_no_versions(void **state)
{
	static const char *const cases[] = {
	    "",
	    "ruby",
	    "ruby ",
	    "ruby - Copyright (C) 1993-2025 Yukihiro Matsumoto",
	    "ruby 3",
	    "ruby 3.4",
	    "ruby 3.4.",
	    "ruby 3.4.5",
	    "ruby 3.4.5 ",
	    "ruby 3.4.5 (",
	    "ruby 3.4.5 (revision 20cda200d3)",
	    "ruby 3.4.5, 2025",
	    "ruby  3.4.5 (2025-07-16)",
	    "jruby 9.4.5.0 (3.1.4) 2023-11-02",
	    "ruby 12345678901234567890.1.1 (2025-07-16)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char version[16] = "before";

		assert_false(ruby_file_version(cases[i], version, sizeof(version)));
		assert_string_equal(version, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_versions),
	    cmocka_unit_test(test_no_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
