/* The numbers and strings that records consist of: what is written is what is read, and nothing is read behind the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recording/bytes.h"

static void test_numbers(void **state)
{
	static const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};
	struct byte_buffer buffer = {0};
	struct byte_cursor cursor;

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		bytes_add_number(&buffer, numbers[i]);
		bytes_add_signed(&buffer, (int64_t)numbers[i]);
		bytes_add_signed(&buffer, -(int64_t)numbers[i]);
	}
	bytes_add_signed(&buffer, INT64_MIN);
	cursor = (struct byte_cursor){buffer.data, buffer.data + buffer.length, false};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_true(bytes_number(&cursor) == numbers[i]);
		assert_true(bytes_signed(&cursor) == (int64_t)numbers[i]);
		assert_true(bytes_signed(&cursor) == -(int64_t)numbers[i]);
	}
	assert_true(bytes_signed(&cursor) == INT64_MIN);
	assert_false(cursor.failed);
	assert_ptr_equal(cursor.at, cursor.end);
	assert_int_equal(bytes_byte(&cursor), 0);
	assert_true(cursor.failed);
	bytes_clear(&buffer);
	/* Small ones take a byte, also below zero. */
	bytes_add_signed(&buffer, -64);
	assert_int_equal(buffer.length, 1);
	assert_int_equal(buffer.data[0], 0x7f);
	bytes_clear(&buffer);
}

static void assert_no_number(const void *bytes, size_t length)
{
	/* At the very end of a block: a byte more is found by AddressSanitizer. */
	uint8_t *copy = malloc(length);
	struct byte_cursor cursor = {copy, copy + length, false};

	memcpy(copy, bytes, length);
	assert_true(bytes_number(&cursor) == 0);
	assert_true(cursor.failed);
	/* Nothing comes after that. */
	assert_true(bytes_number(&cursor) == 0 && bytes_signed(&cursor) == 0 && bytes_byte(&cursor) == 0);
	free(copy);
}

static void test_no_numbers(void **state)
{
	(void)state;
	assert_no_number("\x80", 1);
	assert_no_number("\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9);
	/* More than 64 bits. */
	assert_no_number("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
	assert_no_number("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80\x01", 11);
}

static void test_strings(void **state)
{
	struct byte_buffer buffer = {0};
	struct byte_cursor cursor;
	const char *text;
	size_t length;

	(void)state;
	bytes_add_string(&buffer, "each");
	bytes_add_string(&buffer, NULL);
	bytes_add_string(&buffer, "");
	cursor = (struct byte_cursor){buffer.data, buffer.data + buffer.length, false};
	text = bytes_string(&cursor, &length);
	assert_int_equal(length, 4);
	assert_memory_equal(text, "each", 4);
	assert_null(bytes_string(&cursor, &length));
	assert_non_null(bytes_string(&cursor, &length));
	assert_int_equal(length, 0);
	assert_false(cursor.failed);
	assert_null(bytes_string(&cursor, &length));
	assert_true(cursor.failed);
	/* One that goes on behind the end; one as long as there can be none. */
	buffer.length = 0;
	bytes_add_number(&buffer, 3);
	bytes_add(&buffer, "x", 1);
	cursor = (struct byte_cursor){buffer.data, buffer.data + buffer.length, false};
	assert_null(bytes_string(&cursor, &length));
	assert_true(cursor.failed);
	buffer.length = 0;
	bytes_add_number(&buffer, UINT64_MAX);
	cursor = (struct byte_cursor){buffer.data, buffer.data + buffer.length, false};
	assert_null(bytes_string(&cursor, &length));
	assert_true(cursor.failed);
	bytes_clear(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_no_numbers),
	    cmocka_unit_test(test_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
