/* Stacks that are known by their fingerprints: found again, and doubted where what they lead to may have changed. */
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

	assert_int_equal(known_find(known, &now, &first, false, &stack), KNOWN_AS_NEW);
	assert_int_equal(stack.id, KNOWN_NONE.id);
	assert_int_equal(known_find(known, &now, &first, true, &stack), KNOWN_AS_NEW);
	assert_true(stack.id < KNOWN_MAX);
	/* Seen twice is not yet right. */
	assert_int_equal(known_find(known, &now, &first, true, &again), KNOWN_AS_NEW);
	assert_int_equal(again.id, stack.id);
	known_settle(known, stack);
	assert_int_equal(known_find(known, &now, &first, true, &again), KNOWN_AS_RIGHT);
	assert_int_equal(known_find(known, &now, &first, false, &again), KNOWN_AS_RIGHT);
	assert_int_equal(again.id, stack.id);
	assert_int_equal(again.epoch, stack.epoch);
	assert_int_equal(known_find(known, &now, &second, true, &again), KNOWN_AS_NEW);
	assert_int_not_equal(again.id, stack.id);
	assert_int_equal(known_find(known, &now, &third, true, &again), KNOWN_AS_NEW);
	assert_int_not_equal(again.id, stack.id);
}

/* With the next collection, and while one has begun and not marked, nothing is right. */
static void test_collected(void **state)
{
	uint64_t words[] = {1, 2, 3}, other[] = {1, 2, 4};
	const struct fingerprint first = of(words, 3), second = of(other, 3);
	struct collections collecting = now, later = now;
	struct known *known = *state;
	struct known_stack stack, again;

	collecting.collecting = collecting.beginning = true;
	later.begun++;
	known_find(known, &now, &first, true, &stack);
	known_settle(known, stack);
	known_find(known, &now, &second, true, &again);
	assert_int_equal(known_find(known, &collecting, &first, true, &again), KNOWN_AS_RIGHT);
	assert_int_equal(known_find(known, &later, &first, false, &again), KNOWN_AS_FAMILIAR);
	assert_int_equal(again.id, stack.id);
	assert_int_not_equal(again.epoch, stack.epoch);
	/* What was said too late is said of another moment. */
	known_settle(known, stack);
	assert_int_equal(known_find(known, &later, &first, true, &again), KNOWN_AS_FAMILIAR);
	known_settle(known, again);
	assert_int_equal(known_find(known, &later, &first, true, &again), KNOWN_AS_RIGHT);
	/* What never was right is not familiar. */
	assert_int_equal(known_find(known, &later, &second, true, &again), KNOWN_AS_NEW);
	later.begun++;
	later.collecting = later.beginning = true;
	assert_int_equal(known_find(known, &later, &first, true, &again), KNOWN_AS_UNTOLD);
	assert_int_equal(again.id, KNOWN_NONE.id);
	later.told = false;
	assert_int_equal(known_find(known, &later, &first, true, &again), KNOWN_AS_UNTOLD);
	assert_int_equal(again.id, KNOWN_NONE.id);
}

static void test_doubted(void **state)
{
	uint64_t words[] = {1, 2, 3};
	const struct fingerprint first = of(words, 3);
	struct known *known = *state;
	struct known_stack stack, again;

	known_find(known, &now, &first, true, &stack);
	known_settle(known, stack);
	known_doubt(known);
	assert_int_equal(known_find(known, &now, &first, true, &again), KNOWN_AS_FAMILIAR);
	known_settle(known, stack);
	assert_int_equal(known_find(known, &now, &first, true, &again), KNOWN_AS_FAMILIAR);
	known_settle(known, again);
	assert_int_equal(known_find(known, &now, &first, true, &again), KNOWN_AS_RIGHT);
	/* It turns out to be something else. */
	known_doubt(known);
	known_reject(known, again);
	assert_int_equal(known_find(known, &now, &first, true, &again), KNOWN_AS_NEW);
}

/* There is no end to stacks: when there is no room for more, all begins anew. */
static void test_full(void **state)
{
	struct known *known = *state;
	struct known_stack stack, first;
	uint64_t words[2000] = {0};
	const struct fingerprint small = of(words, 2), large = of(words, 2000);

	known_find(known, &now, &small, true, &first);
	known_settle(known, first);
	assert_int_equal(known_times_full(known), 0);
	for (uint64_t i = 1; i <= KNOWN_MAX; i++) {
		words[0] = i;
		assert_int_equal(known_find(known, &now, &small, true, &stack), KNOWN_AS_NEW);
		assert_true(stack.id < KNOWN_MAX);
	}
	words[0] = 0;
	assert_int_equal(known_find(known, &now, &small, true, &stack), KNOWN_AS_NEW);
	assert_int_not_equal(stack.epoch, first.epoch);
	assert_int_equal(known_times_full(known), 1);
	/* Another stack has its number by now: what was said of it too late does not make that one familiar. */
	for (words[0] = KNOWN_MAX; words[0] > 0; words[0]--) {
		known_find(known, &now, &small, false, &stack);
		if (stack.id == first.id)
			break;
	}
	assert_int_equal(stack.id, first.id);
	known_settle(known, first);
	known_doubt(known);
	assert_int_equal(known_find(known, &now, &small, false, &stack), KNOWN_AS_NEW);
	for (uint64_t i = 1; i <= 2000; i++) {
		words[0] = i;
		known_find(known, &now, &large, true, &stack);
		assert_true(stack.id < KNOWN_MAX);
		known_settle(known, stack);
		assert_int_equal(known_find(known, &now, &large, true, &stack), KNOWN_AS_RIGHT);
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
	assert_int_equal(known_find(*state, &now, &fingerprint, true, &stack), KNOWN_AS_NEW);
	assert_int_equal(stack.id, KNOWN_NONE.id);
	free(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_found_again, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_collected, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_doubted, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_too_long, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
