/* The tables of a profile: what is added once is found again, and adding stays fast, whatever is added. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "recording/profile.h"

static uint32_t function(struct profile *profile, const char *name)
{
	struct profile_function function = {.kind = PROFILE_RUBY};

	function.name = function.label = profile_string(profile, name);
	return profile_add_function(profile, &function);
}

static void test_tables(void **state)
{
	enum { COUNT = 5000 };
	struct profile *profile = profile_create();
	uint32_t nodes[COUNT];
	char name[32];

	(void)state;
	assert_int_equal(profile->nr_nodes, 1);
	assert_null(profile_string(profile, NULL));
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < COUNT; i++) {
			snprintf(name, sizeof(name), "method_%u", i);
			assert_int_equal(function(profile, name), i);
			assert_int_equal(profile_add_frame(profile, i, -(int64_t)i), i);
			/* A tree of two children each. */
			nodes[i] = profile_add_node(profile, i == 0 ? 0 : nodes[(i - 1) / 2], i);
			assert_int_equal(nodes[i], i + 1);
			assert_true(profile->nodes[nodes[i]].parent < nodes[i]);
		}
	}
	assert_int_equal(profile->nr_functions, COUNT);
	assert_int_equal(profile->nr_frames, COUNT);
	assert_int_equal(profile->nr_nodes, COUNT + 1);
	assert_ptr_equal(profile_string(profile, "method_77"), profile->functions[77].name);
	assert_string_equal(profile->functions[4999].name, "method_4999");
	assert_true(profile_bytes(profile) > COUNT * sizeof(struct profile_function));
	profile_destroy(profile);
	profile_destroy(NULL);
}

/* Each part of a function alone makes it another one. */
static void test_functions_differ(void **state)
{
	struct profile *profile = profile_create();
	const char *a = profile_string(profile, "a"), *b = profile_string(profile, "b");
	const struct profile_function functions[] = {
	    {PROFILE_RUBY, a, a, a, a, 1},  {PROFILE_CFUNC, a, a, a, a, 1},   {PROFILE_RUBY, b, a, a, a, 1},
	    {PROFILE_RUBY, a, b, a, a, 1},  {PROFILE_RUBY, a, a, b, a, 1},    {PROFILE_RUBY, a, a, NULL, a, 1},
	    {PROFILE_RUBY, a, a, a, b, 1},  {PROFILE_RUBY, a, a, a, NULL, 1}, {PROFILE_RUBY, a, a, a, a, 2},
	    {PROFILE_RUBY, a, a, a, a, -1},
	};

	(void)state;
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
			assert_int_equal(profile_add_function(profile, &functions[i]), i);
	profile_destroy(profile);
}

static void test_found_again(void **state)
{
	struct profile *profile = profile_create();
	const struct profile_process processes[] = {{.pid = 7, .started = 100}, {.pid = 7, .started = 200}};
	struct profile_thread thread = {.process = 0, .tid = 7, .main = true}, other;

	(void)state;
	assert_int_equal(profile_find_process(profile, 7, 100), UINT32_MAX);
	assert_int_equal(profile_find_thread(profile, &thread), UINT32_MAX);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(profile_add_process(profile, &processes[i]), i);
	assert_int_equal(profile_find_process(profile, 7, 100), 0);
	assert_int_equal(profile_find_process(profile, 7, 200), 1);
	assert_int_equal(profile_find_process(profile, 8, 100), UINT32_MAX);
	assert_int_equal(profile_add_thread(profile, &thread), 0);
	/* The same once more is another one; the first is found. */
	assert_int_equal(profile_add_thread(profile, &thread), 1);
	assert_int_equal(profile_find_thread(profile, &thread), 0);
	for (int i = 0; i < 5; i++) {
		other = thread;
		other.process = i == 0;
		other.tid = i == 1 ? 8 : 7;
		other.name = i == 2 ? profile_string(profile, "worker") : NULL;
		other.main = i != 3;
		other.ractor = i == 4 ? 2 : 0;
		assert_int_equal(profile_find_thread(profile, &other), UINT32_MAX);
	}
	/* By what it is now, and not by what it was; also when the table has grown. */
	for (int i = 0; i < 1000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "worker %d", i);
		other = (struct profile_thread){.tid = 7, .name = profile_string(profile, name)};
		assert_true(profile_replace_thread(profile, 1, &other));
		assert_int_equal(profile_find_thread(profile, &other), 1);
		assert_int_equal(profile_find_thread(profile, &thread), 0);
	}
	other.name = profile_string(profile, "worker 5");
	assert_int_equal(profile_find_thread(profile, &other), UINT32_MAX);
	profile_destroy(profile);
}

/* What one capture calls two threads is two threads; another capture has serials of its own. */
static void test_serials(void **state)
{
	enum { ONE = 1, OTHER = 2 };
	struct profile *profile = profile_create();
	struct profile_thread thread = {.tid = 7, .ractor = 1};
	const uint64_t one = UINT64_C(1) << 32, another = UINT64_C(2) << 32;

	(void)state;
	thread.serial = one + ONE;
	assert_int_equal(profile_add_thread(profile, &thread), 0);
	thread.serial = one + OTHER;
	assert_int_equal(profile_find_thread(profile, &thread), UINT32_MAX);
	assert_int_equal(profile_add_thread(profile, &thread), 1);
	assert_int_equal(profile_find_thread(profile, &thread), 1);
	/* Also if its tid was not known before, or is not known now. */
	thread.tid = 0;
	assert_int_equal(profile_find_thread(profile, &thread), 1);
	thread = (struct profile_thread){.tid = 7, .ractor = 1, .serial = another + OTHER};
	assert_int_equal(profile_find_thread(profile, &thread), 0);
	thread.serial = 0;
	assert_int_equal(profile_find_thread(profile, &thread), 0);
	thread.tid = 0;
	assert_int_equal(profile_find_thread(profile, &thread), UINT32_MAX);
	thread = (struct profile_thread){.process = 1, .tid = 7, .ractor = 1, .serial = one + ONE};
	assert_int_equal(profile_find_thread(profile, &thread), UINT32_MAX);
	profile_destroy(profile);
}

static void test_long_strings(void **state)
{
	const size_t length = 200000;
	struct profile *profile = profile_create();
	char *text = malloc(length + 1);

	(void)state;
	memset(text, 'x', length);
	text[length] = '\0';
	assert_string_equal(profile_string(profile, text), text);
	assert_string_equal(profile_string(profile, "x"), "x");
	assert_ptr_equal(profile_string(profile, text), profile_string(profile, text));
	assert_true(profile_bytes(profile) >= length);
	profile_destroy(profile);
	free(text);
}

static double cpu_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/*
 * Lines that all have the same place, if what hashes begin with is known: these frames would be looked through one by
 * one, for minutes.
 */
static void test_lines_of_one_hash(void **state)
{
	enum { COUNT = 300000 };
	/* As recording/profile.c mixes, from 1 on. */
	const uint64_t factor = 0x9e3779b97f4a7c15ULL, of_function = factor ^ factor >> 29;
	uint64_t inverse = 1;
	struct profile *profile = profile_create();
	double before = cpu_seconds();

	(void)state;
	for (int i = 0; i < 6; i++)
		inverse *= 2 - factor * inverse;
	assert_true(inverse * factor == 1);
	assert_int_equal(function(profile, "each"), 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		/* The lowest bits are 0, and those from 29 on that are mixed into them. */
		uint64_t hash = (i & 0x1ff) << 20 | i >> 9 << 49;

		assert_int_equal(profile_add_frame(profile, 0, (int64_t)(hash * inverse ^ of_function)), i);
	}
	assert_true(cpu_seconds() - before < 60);
	profile_destroy(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tables),	 cmocka_unit_test(test_functions_differ),
	    cmocka_unit_test(test_found_again),	 cmocka_unit_test(test_serials),
	    cmocka_unit_test(test_long_strings), cmocka_unit_test(test_lines_of_one_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
