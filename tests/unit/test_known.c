/* Stacks that are known by their fingerprints: found again, and forgotten with what they lead to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sample/known.h"

static const struct collections now = {.begun = 7, .told = true};

static int set_up(void **state)
{
	*state = known_create();
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	known_destroy(*state);
	return 0;
}

static struct fingerprint of(uint64_t *words, size_t count)
{
	return (struct fingerprint){.words = words, .count = count, .capacity = count};
}

static void test_found_again(void **state)
{
	uint64_t words[] = {1, 2, 3}, other[] = {1, 2, 4}, longer[] = {1, 2, 3, 0};
	const struct fingerprint first = of(words, 3), second = of(other, 3), third = of(longer, 4);
	struct known *known = *state;
	struct known_stack stack, again;

	assert_false(known_recognize(known, &now, &first, &stack));
	assert_int_equal(stack.id, KNOWN_NONE.id);
	assert_false(known_find(known, &now, &first, &stack));
	assert_true(stack.id < KNOWN_MAX);
	/* Seen twice is not yet right. */
	assert_false(known_find(known, &now, &first, &again));
	assert_int_equal(again.id, stack.id);
	known_settle(known, stack);
	assert_true(known_find(known, &now, &first, &again));
	assert_true(known_recognize(known, &now, &first, &again));
	assert_int_equal(again.id, stack.id);
	assert_int_equal(again.epoch, stack.epoch);
	assert_false(known_find(known, &now, &second, &again));
	assert_int_not_equal(again.id, stack.id);
	assert_false(known_find(known, &now, &third, &again));
	assert_int_not_equal(again.id, stack.id);
}

/* With the next collection, and while one has begun and not marked, nothing is known. */
static void test_forgotten(void **state)
{
	uint64_t words[] = {1, 2, 3};
	const struct fingerprint first = of(words, 3);
	struct collections collecting = now, later = now;
	struct known *known = *state;
	struct known_stack stack, again;

	collecting.collecting = collecting.beginning = true;
	later.begun++;
	known_find(known, &now, &first, &stack);
	known_settle(known, stack);
	assert_true(known_find(known, &collecting, &first, &again));
	assert_false(known_recognize(known, &later, &first, &again));
	assert_false(known_find(known, &later, &first, &again));
	assert_int_not_equal(again.epoch, stack.epoch);
	/* What was said too late is said of another one. */
	known_settle(known, stack);
	assert_false(known_find(known, &later, &first, &again));
	known_settle(known, again);
	assert_true(known_find(known, &later, &first, &again));
	later.begun++;
	later.collecting = later.beginning = true;
	assert_false(known_find(known, &later, &first, &again));
	assert_int_equal(again.id, KNOWN_NONE.id);
	later.told = false;
	assert_false(known_find(known, &later, &first, &again));
	assert_int_equal(again.id, KNOWN_NONE.id);
}

/* There is no end to stacks: when there is no room for more, all begins anew. */
static void test_full(void **state)
{
	struct known *known = *state;
	struct known_stack stack, first;
	uint64_t words[2000] = {0};
	const struct fingerprint small = of(words, 2), large = of(words, 2000);

	known_find(known, &now, &small, &first);
	known_settle(known, first);
	for (uint64_t i = 1; i <= KNOWN_MAX; i++) {
		words[0] = i;
		assert_false(known_find(known, &now, &small, &stack));
		assert_true(stack.id < KNOWN_MAX);
	}
	words[0] = 0;
	assert_false(known_find(known, &now, &small, &stack));
	assert_int_not_equal(stack.epoch, first.epoch);
	for (uint64_t i = 1; i <= 2000; i++) {
		words[0] = i;
		known_find(known, &now, &large, &stack);
		assert_true(stack.id < KNOWN_MAX);
		known_settle(known, stack);
		assert_true(known_find(known, &now, &large, &stack));
	}
}

/* What takes too much room has no place. */
static void test_too_long(void **state)
{
	const size_t count = 1u << 19;
	uint64_t *words = calloc(count, sizeof(*words));
	const struct fingerprint fingerprint = of(words, count);
	struct known_stack stack;

	assert_non_null(words);
	assert_false(known_find(*state, &now, &fingerprint, &stack));
	assert_int_equal(stack.id, KNOWN_NONE.id);
	free(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_found_again, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_forgotten, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_too_long, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
