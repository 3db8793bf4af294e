/* Stacks that are known by their fingerprints: found again, and doubted where what they lead to may have changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sampling/stack_cache.h"

static const struct collections now = {.begun = 7, .told = true};

static int set_up(void **state)
{
	*state = stack_cache_create();
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	stack_cache_destroy(*state);
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
	struct stack_cache *cache = *state;
	struct cached_stack stack, again;

	assert_int_equal(stack_cache_find(cache, &now, &first, false, &stack), CACHE_MISS);
	assert_int_equal(stack.id, CACHE_NONE.id);
	assert_int_equal(stack_cache_find(cache, &now, &first, true, &stack), CACHE_MISS);
	assert_true(stack.id < CACHE_MAX);
	/* Seen twice is not yet right. */
	assert_int_equal(stack_cache_find(cache, &now, &first, true, &again), CACHE_MISS);
	assert_int_equal(again.id, stack.id);
	stack_cache_confirm(cache, stack);
	assert_int_equal(stack_cache_find(cache, &now, &first, true, &again), CACHE_HIT);
	assert_int_equal(stack_cache_find(cache, &now, &first, false, &again), CACHE_HIT);
	assert_int_equal(again.id, stack.id);
	assert_int_equal(again.epoch, stack.epoch);
	assert_int_equal(stack_cache_find(cache, &now, &second, true, &again), CACHE_MISS);
	assert_int_not_equal(again.id, stack.id);
	assert_int_equal(stack_cache_find(cache, &now, &third, true, &again), CACHE_MISS);
	assert_int_not_equal(again.id, stack.id);
}

/* With the next collection, and while one has begun and not marked, nothing is right. */
static void test_collected(void **state)
{
	uint64_t words[] = {1, 2, 3}, other[] = {1, 2, 4};
	const struct fingerprint first = of(words, 3), second = of(other, 3);
	struct collections collecting = now, later = now;
	struct stack_cache *cache = *state;
	struct cached_stack stack, again;

	collecting.collecting = collecting.beginning = true;
	later.begun++;
	stack_cache_find(cache, &now, &first, true, &stack);
	stack_cache_confirm(cache, stack);
	stack_cache_find(cache, &now, &second, true, &again);
	assert_int_equal(stack_cache_find(cache, &collecting, &first, true, &again), CACHE_HIT);
	assert_int_equal(stack_cache_find(cache, &later, &first, false, &again), CACHE_STALE);
	assert_int_equal(again.id, stack.id);
	assert_int_not_equal(again.epoch, stack.epoch);
	/* What was said too late is said of another moment. */
	stack_cache_confirm(cache, stack);
	assert_int_equal(stack_cache_find(cache, &later, &first, true, &again), CACHE_STALE);
	stack_cache_confirm(cache, again);
	assert_int_equal(stack_cache_find(cache, &later, &first, true, &again), CACHE_HIT);
	/* What never was right is not familiar. */
	assert_int_equal(stack_cache_find(cache, &later, &second, true, &again), CACHE_MISS);
	later.begun++;
	later.collecting = later.beginning = true;
	assert_int_equal(stack_cache_find(cache, &later, &first, true, &again), CACHE_UNKNOWN);
	assert_int_equal(again.id, CACHE_NONE.id);
	later.told = false;
	assert_int_equal(stack_cache_find(cache, &later, &first, true, &again), CACHE_UNKNOWN);
	assert_int_equal(again.id, CACHE_NONE.id);
}

static void test_doubted(void **state)
{
	uint64_t words[] = {1, 2, 3};
	const struct fingerprint first = of(words, 3);
	struct stack_cache *cache = *state;
	struct cached_stack stack, again;

	stack_cache_find(cache, &now, &first, true, &stack);
	stack_cache_confirm(cache, stack);
	stack_cache_expire(cache);
	assert_int_equal(stack_cache_find(cache, &now, &first, true, &again), CACHE_STALE);
	stack_cache_confirm(cache, stack);
	assert_int_equal(stack_cache_find(cache, &now, &first, true, &again), CACHE_STALE);
	stack_cache_confirm(cache, again);
	assert_int_equal(stack_cache_find(cache, &now, &first, true, &again), CACHE_HIT);
	/* It turns out to be something else. */
	stack_cache_expire(cache);
	stack_cache_reject(cache, again);
	assert_int_equal(stack_cache_find(cache, &now, &first, true, &again), CACHE_MISS);
}

/* There is no end to stacks: when there is no room for more, all begins anew. */
static void test_full(void **state)
{
	struct stack_cache *cache = *state;
	struct cached_stack stack, first;
	uint64_t words[2000] = {0};
	const struct fingerprint small = of(words, 2), large = of(words, 2000);

	stack_cache_find(cache, &now, &small, true, &first);
	stack_cache_confirm(cache, first);
	assert_int_equal(stack_cache_times_full(cache), 0);
	for (uint64_t i = 1; i <= CACHE_MAX; i++) {
		words[0] = i;
		assert_int_equal(stack_cache_find(cache, &now, &small, true, &stack), CACHE_MISS);
		assert_true(stack.id < CACHE_MAX);
	}
	words[0] = 0;
	assert_int_equal(stack_cache_find(cache, &now, &small, true, &stack), CACHE_MISS);
	assert_int_not_equal(stack.epoch, first.epoch);
	assert_int_equal(stack_cache_times_full(cache), 1);
	/* Another stack has its number by now: what was said of it too late does not make that one familiar. */
	for (words[0] = CACHE_MAX; words[0] > 0; words[0]--) {
		stack_cache_find(cache, &now, &small, false, &stack);
		if (stack.id == first.id)
			break;
	}
	assert_int_equal(stack.id, first.id);
	stack_cache_confirm(cache, first);
	stack_cache_expire(cache);
	assert_int_equal(stack_cache_find(cache, &now, &small, false, &stack), CACHE_MISS);
	for (uint64_t i = 1; i <= 2000; i++) {
		words[0] = i;
		stack_cache_find(cache, &now, &large, true, &stack);
		assert_true(stack.id < CACHE_MAX);
		stack_cache_confirm(cache, stack);
		assert_int_equal(stack_cache_find(cache, &now, &large, true, &stack), CACHE_HIT);
	}
}

/* What takes too much room has no place. */
static void test_too_long(void **state)
{
	const size_t count = 1u << 19;
	uint64_t *words = calloc(count, sizeof(*words));
	const struct fingerprint fingerprint = of(words, count);
	struct cached_stack stack;

	assert_non_null(words);
	assert_int_equal(stack_cache_find(*state, &now, &fingerprint, true, &stack), CACHE_MISS);
	assert_int_equal(stack.id, CACHE_NONE.id);
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
