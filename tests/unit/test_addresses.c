/* Addresses: sorted, each once, looked up; and what belongs to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/addresses.h"

#define COUNT 1000

/* In no order, and some more than once. */
static uint64_t some(uint64_t i)
{
	return i * 7919 % 613 * 8 + UINT64_C(0x7f0000000000);
}

static void test_addresses(void **state)
{
	struct addresses addresses = {0};

	(void)state;
	addresses_sort(&addresses);
	assert_false(addresses_have(&addresses, 0));
	for (uint64_t i = 0; i < COUNT; i++)
		assert_true(addresses_add(&addresses, some(i)));
	assert_int_equal(addresses.count, COUNT);
	addresses_sort(&addresses);
	assert_int_equal(addresses.count, 613);
	for (size_t i = 1; i < addresses.count; i++)
		assert_true(addresses.of[i] > addresses.of[i - 1]);
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_true(addresses_have(&addresses, some(i)));
		assert_false(addresses_have(&addresses, some(i) + 1));
	}
	addresses_clear(&addresses);
	assert_int_equal(addresses.count, 0);
	assert_null(addresses.of);
}

static void test_map(void **state)
{
	struct address_map map = {0};

	(void)state;
	address_map_sort(&map);
	assert_null(address_map_find(&map, 0));
	for (uint64_t i = COUNT; i-- > 0;)
		assert_true(address_map_add(&map, some(i), i));
	address_map_sort(&map);
	assert_int_equal(map.count, COUNT);
	for (uint64_t i = 0; i < COUNT; i++) {
		const uint64_t *found = address_map_find(&map, some(i));

		assert_non_null(found);
		/* The first of those that belong to the same. */
		assert_int_equal(*found, i % 613);
		assert_null(address_map_find(&map, some(i) + 1));
	}
	assert_null(address_map_find(&map, 0));
	assert_null(address_map_find(&map, UINT64_MAX));
	address_map_clear(&map);
	assert_null(map.pairs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_addresses),
	    cmocka_unit_test(test_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
