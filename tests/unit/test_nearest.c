/* Which layouts are the nearest to a release: its series, else the next series on each side; and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/nearest.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* version, versions, levels, configuration */
struct given {
	const char *version, *versions, *levels, *configuration;
};

static struct layout layouts[16];
static const struct layout *list[16];
static size_t count;

static void give(const struct given *given, size_t how_many)
{
	count = how_many;
	for (size_t i = 0; i < count; i++) {
		layouts[i] = (struct layout){
		    .version = (char *)given[i].version,
		    .versions = (char *)given[i].versions,
		    .levels = (char *)given[i].levels,
		    .configuration = (char *)given[i].configuration,
		};
		list[i] = &layouts[i];
	}
}

/* What a layout is for, and its configuration: "3.2.0 3.2.2; 3.2.3 setjmp; " */
static void assert_order(const size_t *order, size_t near, const char *expected)
{
	char text[1024] = "", releases[64];

	for (size_t i = 0; i < near; i++) {
		const struct layout *layout = list[order[i]];
		size_t length = strlen(text);

		layout_releases(layout, releases, sizeof(releases));
		snprintf(text + length, sizeof(text) - length, "%s%s%s; ", releases, layout->configuration ? " " : "",
			 layout->configuration ? layout->configuration : "");
	}
	assert_string_equal(text, expected);
}

static void assert_nearest(const char *version, const char *description, const char *expected)
{
	size_t order[COUNT(layouts)];

	assert_order(order, nearest_choose(version, description, list, count, order), expected);
}

static const struct given some[] = {
    {"3.1.2", "3.1.0 3.1.4", NULL, NULL}, {"3.1.5", "3.1.5 3.1.7", NULL, NULL}, {"3.3.0", NULL, NULL, "setjmp"},
    {"3.3.0", NULL, NULL, NULL},	  {"3.3.1", "3.3.1 3.3.6", NULL, NULL}, {"3.3.8", "3.3.7 3.3.11", NULL, NULL},
    {"3.4.5", "3.4.0 3.4.9", NULL, NULL}, {"4.0.5", "4.0.0 4.0.5", NULL, NULL},
};

static void test_of_the_same_series(void **state)
{
	(void)state;
	give(some, COUNT(some));
	assert_nearest("4.0.6", NULL, "4.0.0 4.0.5; ");
	assert_nearest("3.3.12", NULL, "3.3.7 3.3.11; 3.3.1 3.3.6; 3.3.0; 3.3.0 setjmp; ");
	assert_nearest("3.1.10", NULL, "3.1.5 3.1.7; 3.1.0 3.1.4; ");
	/* One whose own was taken away: of two that are as near, the older one. */
	give(some + 4, 2);
	assert_nearest("3.3.0", NULL, "3.3.1 3.3.6; 3.3.7 3.3.11; ");
	give((const struct given[]){{"3.2.4", "3.2.4 3.2.6"}, {"3.2.0", "3.2.0 3.2.2"}}, 2);
	assert_nearest("3.2.3", NULL, "3.2.0 3.2.2; 3.2.4 3.2.6; ");
}

static void test_of_the_next_series(void **state)
{
	(void)state;
	give(some, COUNT(some));
	assert_nearest("3.2.1", NULL, "3.1.5 3.1.7; 3.1.0 3.1.4; 3.3.0; 3.3.0 setjmp; 3.3.1 3.3.6; 3.3.7 3.3.11; ");
	assert_nearest("4.1.0", NULL, "4.0.0 4.0.5; ");
	assert_nearest("2.7.8", NULL, "3.1.0 3.1.4; 3.1.5 3.1.7; ");
	assert_nearest("10.0.0", NULL, "4.0.0 4.0.5; ");
	assert_nearest("3.10.0", NULL, "3.4.0 3.4.9; 4.0.0 4.0.5; ");
}

static void test_of_a_patch_level(void **state)
{
	static const struct given levels[] = {
	    {"2.0.0", NULL, "0 0", NULL}, {"2.0.0", NULL, "576 648", NULL}, {"2.1.0", "2.1.0 2.1.2", NULL, NULL}};

	(void)state;
	give(levels, COUNT(levels));
	assert_nearest("2.0.0", "ruby 2.0.0p195 (2013-05-14) [x86_64-linux]", "2.0.0p0; 2.0.0p576 2.0.0p648; ");
	assert_nearest("2.0.0", "ruby 2.0.0p481 (2014-05-08) [x86_64-linux]", "2.0.0p576 2.0.0p648; 2.0.0p0; ");
	assert_nearest("2.0.0", NULL, "2.0.0p0; 2.0.0p576 2.0.0p648; ");
}

static void test_what_is_no_release(void **state)
{
	(void)state;
	give((const struct given[]){{"3.5.0preview1"}, {"3.4.5", "3.4.9 3.4.0"}}, 2);
	assert_nearest("3.4.6", NULL, "3.4.5; ");
	assert_nearest("3.5.0preview1", NULL, "");
	assert_nearest("", NULL, "");
	give(NULL, 0);
	assert_nearest("3.4.6", NULL, "");
}

static void test_newest_first(void **state)
{
	size_t order[COUNT(layouts)];

	(void)state;
	give(some, COUNT(some));
	assert_order(order, nearest_newest_first(list, count, order),
		     "4.0.0 4.0.5; 3.4.0 3.4.9; 3.3.7 3.3.11; 3.3.1 3.3.6; 3.3.0; 3.3.0 setjmp; 3.1.5 3.1.7; "
		     "3.1.0 3.1.4; ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_of_the_same_series), cmocka_unit_test(test_of_the_next_series),
	    cmocka_unit_test(test_of_a_patch_level),   cmocka_unit_test(test_what_is_no_release),
	    cmocka_unit_test(test_newest_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
