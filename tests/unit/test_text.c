/* Text of a target: whatever its bytes are, what comes out is UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void assert_text(const char *bytes, size_t length, const char *expected)
{
	struct text text = {0};

	text_add(&text, bytes, length);
	assert_false(text.failed);
	assert_string_equal(text.data, expected);
	assert_int_equal(text.length, strlen(expected));
	text_clear(&text);
	assert_null(text.data);
}

#define CHECK(bytes, expected) assert_text(bytes, sizeof(bytes) - 1, expected)

static void test_well_formed(void **state)
{
	(void)state;
	CHECK("plain \\x41", "plain \\x41");
	CHECK("\x7f\x01", "\x7f\x01"); /* control characters are the renderer's business */
	CHECK("\xc2\x80\xdf\xbf", "\xc2\x80\xdf\xbf");
	CHECK("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf");
	CHECK("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
}

static void test_ill_formed(void **state)
{
	(void)state;
	CHECK("a\0b", "a\\x00b");
	CHECK("\x80", "\\x80");		 /* a continuation alone */
	CHECK("\xc0\xaf", "\\xC0\\xAF"); /* overlong */
	CHECK("\xc1\xbf", "\\xC1\\xBF");
	CHECK("\xe0\x9f\xbf", "\\xE0\\x9F\\xBF");
	CHECK("\xed\xa0\x80", "\\xED\\xA0\\x80"); /* a surrogate */
	CHECK("\xf0\x8f\xbf\xbf", "\\xF0\\x8F\\xBF\\xBF");
	CHECK("\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"); /* beyond U+10FFFF */
	CHECK("\xf5\xff", "\\xF5\\xFF");
	CHECK("\xe3\x81", "\\xE3\\x81"); /* cut short */
	CHECK("\xe3\x81x", "\\xE3\\x81x");
	CHECK("\xa4\xa2\xe3\x81\x82", "\\xA4\\xA2\xe3\x81\x82"); /* EUC-JP, then UTF-8 */
}

/* What drives a terminal, and what stands beside it in the code charts and does not. */
static void test_control(void **state)
{
	static const struct {
		const char *text, *printed, *json;
	} cases[] = {
	    {"a\"\\b", "a\"\\b", "\"a\\\"\\\\b\""},
	    {"\x1b[2J\x7f\n", "\\x1B[2J\\x7F\\x0A", "\"\\u001b[2J\\u007f\\u000a\""},
	    {"\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", "\\xC2\\x80\\xC2\\x9B\\xC2\\x9F\xc2\xa0",
	     "\"\\u0080\\u009b\\u009f\xc2\xa0\""},
	    {"\xd8\x9b\xd8\x9c\xd8\x9d", "\xd8\x9b\\xD8\\x9C\xd8\x9d", "\"\xd8\x9b\\u061c\xd8\x9d\""},
	    {"\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90",
	     "\xe2\x80\x8d\\xE2\\x80\\x8E\\xE2\\x80\\x8F\xe2\x80\x90", "\"\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90\""},
	    {"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf",
	     "\xe2\x80\xa7\\xE2\\x80\\xA8\\xE2\\x80\\xAE\xe2\x80\xaf", "\"\xe2\x80\xa7\\u2028\\u202e\xe2\x80\xaf\""},
	    {"\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", "\\xE2\\x81\\xA6\\xE2\\x81\\xA9\xe2\x81\xaa",
	     "\"\\u2066\\u2069\xe2\x81\xaa\""},
	    {"\xef\xbf\xb9\xef\xbf\xbc", "\\xEF\\xBF\\xB9\xef\xbf\xbc", "\"\\ufff9\xef\xbf\xbc\""},
	    {"</script>&\xf0\x9f\x92\x8e", "</script>&\xf0\x9f\x92\x8e",
	     "\"\\u003c/script\\u003e\\u0026\xf0\x9f\x92\x8e\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = NULL, *json = NULL;
		size_t size;
		FILE *stream = open_memstream(&text, &size);

		text_print(cases[i].text, stream);
		fclose(stream);
		assert_string_equal(text, cases[i].printed);
		stream = open_memstream(&json, &size);
		text_print_json(cases[i].text, stream);
		fclose(stream);
		assert_string_equal(json, cases[i].json);
		free(text);
		free(json);
	}
}

/* Every sequence of up to three bytes, and some of four, against the definition by code points. */
static void test_every_character(void **state)
{
	(void)state;
	for (uint32_t first = 0; first < 256; first++) {
		for (uint32_t rest = 0; rest < 0x10000; rest++) {
			const uint8_t bytes[4] = {(uint8_t)first, (uint8_t)(rest >> 8), (uint8_t)rest, 0x80};
			size_t size = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
			static const uint32_t lowest[] = {0, 1, 0x80, 0x800, 0x10000};
			uint32_t point = size == 1 ? first : first & (0x7f >> size);
			bool well_formed = first < 0x80 || (first >= 0xc0 && first < 0xf8);

			for (size_t i = 1; i < size; i++) {
				well_formed &= (bytes[i] & 0xc0) == 0x80;
				point = point << 6 | (bytes[i] & 0x3f);
			}
			well_formed &=
			    point >= lowest[size] && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
			if (text_character(bytes, 4) != (well_formed ? size : 0))
				fail_msg("%02x %02x %02x 80", bytes[0], bytes[1], bytes[2]);
			/* Cut short. */
			for (size_t length = 0; length < size; length++)
				if (text_character(bytes, length) != 0)
					fail_msg("%02x %02x %02x of length %zu", bytes[0], bytes[1], bytes[2], length);
		}
	}
}

static void assert_printed(const char *bytes, const char *expected)
{
	char *printed = NULL;
	size_t length;
	FILE *stream = open_memstream(&printed, &length);

	assert_non_null(stream);
	text_print(bytes, stream);
	fclose(stream);
	assert_string_equal(printed, expected);
	free(printed);
}

static void test_printed(void **state)
{
	(void)state;
	assert_printed("", "");
	assert_printed("a \x41 %s", "a \x41 %s");
	assert_printed("\x01\x1b[1m\x1f\x20\x7e\x7f", "\\x01\\x1B[1m\\x1F ~\\x7F");
	assert_printed("\xc2\x80\xc2\x9f\xc2\xa0", "\\xC2\\x80\\xC2\\x9F\xc2\xa0");
	assert_printed("\xe3\x81\x82\xe3\x81", "\xe3\x81\x82\\xE3\\x81");
	assert_printed("\xff\xc0\x80", "\\xFF\\xC0\\x80");
}

static void test_grows(void **state)
{
	struct text text = {0};

	(void)state;
	for (int i = 0; i < 10000; i++)
		text_add(&text, "\xff", 1);
	text_format(&text, "%d", 42);
	assert_int_equal(text.length, 40002);
	assert_string_equal(text.data + 39996, "\\xFF42");
	text_clear(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_well_formed), cmocka_unit_test(test_ill_formed),	cmocka_unit_test(test_control),
	    cmocka_unit_test(test_grows),	cmocka_unit_test(test_every_character), cmocka_unit_test(test_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
