/* Text of a target: whatever its bytes are, what comes out is UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "decode/text.h"

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
	    cmocka_unit_test(test_well_formed),
	    cmocka_unit_test(test_ill_formed),
	    cmocka_unit_test(test_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
