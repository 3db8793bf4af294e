/* Members through a layout: bitfields, signs, what is absent, and the failure that sticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "synthetic.h"

static void place(struct synthetic *s, enum layout_member_id id, uint32_t offset, uint32_t size, uint8_t shift,
		  uint8_t width)
{
	s->layout->members[id] =
	    (struct layout_member){.present = true, .offset = offset, .size = size, .shift = shift, .width = width};
}

static uint64_t fourteen_bytes(struct synthetic *s)
{
	static const uint8_t bytes[] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd,
					0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54};
	uint64_t object = synthetic_allocate(s, sizeof(bytes));

	synthetic_put(s, object, bytes, sizeof(bytes));
	return object;
}

static void test_sizes(void **state)
{
	struct synthetic *s = *state;
	struct access access = ruby_access(&s->ruby);
	uint64_t object = fourteen_bytes(s);

	place(s, F_ec_cfp, 1, 1, 0, 0);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0x23);
	place(s, F_ec_cfp, 3, 2, 0, 0);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0x8967);
	place(s, F_ec_cfp, 5, 4, 0, 0);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0xfeefcdab);
	place(s, F_ec_cfp, 6, 8, 0, 0);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0x547698badcfeefcd);
	assert_int_equal(access_word(&access, object), 0xefcdab8967452301);
	assert_int_equal(access_address(&access, object, F_ec_cfp), object + 6);
	assert_false(access.failed);
}

static void test_bitfields(void **state)
{
	struct synthetic *s = *state;
	struct access access = ruby_access(&s->ruby);
	uint64_t object = fourteen_bytes(s);

	place(s, F_ec_cfp, 1, 1, 0, 1);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 1);
	place(s, F_ec_cfp, 1, 1, 7, 1);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0);
	place(s, F_ec_cfp, 1, 1, 4, 3);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 2);
	place(s, F_ec_cfp, 2, 2, 6, 5); /* across two bytes of 0x6745 */
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0x1d);
	place(s, F_ec_cfp, 0, 8, 4, 36);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0x896745230);
	place(s, F_ec_cfp, 0, 8, 1, 63);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0xefcdab8967452301 >> 1);
	place(s, F_ec_cfp, 0, 8, 0, 64);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0xefcdab8967452301);
}

static void test_signs(void **state)
{
	struct synthetic *s = *state;
	struct access access = ruby_access(&s->ruby);
	uint64_t object = fourteen_bytes(s);

	place(s, F_ec_cfp, 4, 1, 0, 0);
	assert_true(access_signed(&access, object, F_ec_cfp) == -0x77);
	place(s, F_ec_cfp, 0, 1, 0, 0);
	assert_true(access_signed(&access, object, F_ec_cfp) == 1);
	place(s, F_ec_cfp, 4, 4, 0, 0);
	assert_true(access_signed(&access, object, F_ec_cfp) == (int32_t)0xefcdab89);
	place(s, F_ec_cfp, 0, 8, 0, 0);
	assert_true(access_signed(&access, object, F_ec_cfp) == (int64_t)0xefcdab8967452301);
	place(s, F_ec_cfp, 1, 1, 4, 2); /* 0b10 */
	assert_true(access_signed(&access, object, F_ec_cfp) == -2);
	place(s, F_ec_cfp, 1, 1, 4, 3); /* 0b010 */
	assert_true(access_signed(&access, object, F_ec_cfp) == 2);
}

static void test_absent(void **state)
{
	struct synthetic *s = *state;
	struct access access = ruby_access(&s->ruby);
	uint64_t object = fourteen_bytes(s);

	/* Not 0 at offset 0, although that is there to be read. */
	synthetic_without(s, F_ec_cfp);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0);
	assert_true(access.failed);
	assert_int_equal(access.address, object);
	access = ruby_access(&s->ruby);
	assert_int_equal(access_signed(&access, object, F_ec_cfp), 0);
	assert_true(access.failed);
}

static void test_no_number(void **state)
{
	struct synthetic *s = *state;
	struct access access = ruby_access(&s->ruby);
	uint64_t object = fourteen_bytes(s);

	place(s, F_ec_cfp, 0, 0, 0, 0); /* a flexible array */
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0);
	assert_true(access.failed);
	access = ruby_access(&s->ruby);
	place(s, F_ec_cfp, 0, 9, 0, 0);
	assert_int_equal(access_member(&access, object, F_ec_cfp), 0);
	assert_true(access.failed);
}

static void test_failure_sticks(void **state)
{
	struct synthetic *s = *state;
	uint64_t object = fourteen_bytes(s), nowhere = SYNTHETIC_BASE + SYNTHETIC_SIZE - 8;
	struct access access = ruby_access(&s->ruby);
	uint8_t buffer[4] = {1, 2, 3, 4};

	assert_int_equal(access_word(&access, nowhere), 0);
	assert_true(access.failed);
	assert_int_equal(access.address, nowhere);
	/* What could be read is not, and the first failure is the one that is told. */
	assert_int_equal(access_word(&access, object), 0);
	assert_false(access_bytes(&access, object, buffer, sizeof(buffer)));
	assert_memory_equal(buffer, "\0\0\0\0", 4);
	assert_int_equal(access_member(&access, nowhere + 8, F_ec_cfp), 0);
	assert_int_equal(access.address, nowhere);
	/* It is that chain's own. */
	access = ruby_access(&s->ruby);
	assert_int_equal(access_word(&access, object), 0xefcdab8967452301);
}

static void test_half_readable(void **state)
{
	struct synthetic *s = *state;
	uint64_t run = synthetic_allocate(s, 3 * MEMORY_PAGE), edge = (run | (MEMORY_PAGE - 1)) + 1;
	struct access access;
	uint8_t buffer[8], zero[8] = {0};

	synthetic_unmap(s, edge);
	access = ruby_access(&s->ruby);
	assert_int_equal(access_word(&access, edge - 8), 0xa5a5a5a5a5a5a5a5);
	memset(buffer, 0xff, sizeof(buffer));
	assert_false(access_bytes(&access, edge - 4, buffer, sizeof(buffer)));
	assert_memory_equal(buffer, zero, sizeof(buffer));
	access = ruby_access(&s->ruby);
	assert_int_equal(access_word(&access, UINT64_MAX - 3), 0);
	assert_true(access.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_sizes, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_bitfields, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_signs, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_absent, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_number, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_failure_sticks, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_half_readable, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
