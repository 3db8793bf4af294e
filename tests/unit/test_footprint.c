/* Footprints: what was read for something, and whether it still is that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "memory/footprint_match.h"

#define BASE UINT64_C(0x7f0000000000)

static uint8_t target[2 * MEMORY_PAGE];
static bool readable;

static void source(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	(void)context;
	for (size_t i = 0; i < count; i++) {
		ok[i] = readable && pages[i] >= BASE && pages[i] < BASE + sizeof(target);
		if (ok[i])
			memcpy(buffer + i * MEMORY_PAGE, target + (pages[i] - BASE), MEMORY_PAGE);
	}
}

static struct memory *look(void)
{
	struct memory *memory = memory_create(source, NULL, 16);

	assert_non_null(memory);
	return memory;
}

static bool still_holds(const struct footprint *footprint)
{
	struct memory *memory = look();
	bool holds;

	footprint_want(footprint, memory);
	memory_fetch(memory);
	holds = footprint_is_same(footprint, memory);
	memory_destroy(memory);
	return holds;
}

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(target); i++)
		target[i] = (uint8_t)(i * 7);
	readable = true;
	return 0;
}

static void test_what_was_read(void **state)
{
	struct footprint footprint = {0};
	struct memory *memory = look();
	uint8_t bytes[600];

	(void)state;
	assert_true(memory_read(memory, BASE, bytes, 8)); /* before it is noted */
	memory_record(memory, &footprint);
	assert_true(memory_read(memory, BASE + 100, bytes, 8));
	assert_true(memory_read(memory, BASE + 108, bytes, 8)); /* goes on from there */
	assert_true(memory_read(memory, BASE + 102, bytes, 4)); /* is in it */
	assert_true(memory_read(memory, BASE + MEMORY_PAGE - 300, bytes, 600));
	assert_false(memory_read(memory, BASE + sizeof(target), bytes, 8));
	memory_record(memory, NULL);
	assert_true(memory_read(memory, BASE + 16, bytes, 8)); /* after that */
	assert_int_equal(footprint.nr_spans, 2);
	assert_int_equal(footprint.nr_bytes, 16 + 600);
	memory_destroy(memory);
	assert_true(still_holds(&footprint));
	target[0] = target[16] = 0xff; /* of no interest */
	assert_true(still_holds(&footprint));
	for (size_t i = 0; i < 3; i++) {
		static const size_t of_interest[] = {100, 115, MEMORY_PAGE + 299};
		uint8_t before = target[of_interest[i]];

		target[of_interest[i]] ^= 1;
		assert_false(still_holds(&footprint));
		target[of_interest[i]] = before;
		assert_true(still_holds(&footprint));
	}
	readable = false;
	assert_false(still_holds(&footprint));
	footprint_clear(&footprint);
	assert_true(still_holds(&footprint));
}

/* What is too much is not kept, and never holds. */
static void test_too_much(void **state)
{
	struct footprint long_one = {0}, scattered = {0};
	static uint8_t bytes[FOOTPRINT_MAX];

	(void)state;
	footprint_add(&long_one, BASE, bytes, sizeof(bytes));
	assert_false(long_one.failed);
	footprint_add(&long_one, BASE + 2 * sizeof(bytes), bytes, 1);
	assert_true(long_one.failed);
	assert_false(still_holds(&long_one));
	for (uint64_t i = 0; i < 5000 && !scattered.failed; i++)
		footprint_add(&scattered, BASE + 16 * i, bytes, 8);
	assert_true(scattered.failed);
	footprint_clear(&long_one);
	footprint_clear(&scattered);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_what_was_read, set_up),
	    cmocka_unit_test_setup(test_too_much, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
