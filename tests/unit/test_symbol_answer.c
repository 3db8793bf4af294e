/* Answers of the process that reads symbols: each is read as it was made, and a damaged one is refused or harmless. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

#include "base/random.h"
#include "native/symbol_answer.h"

#define ROUNDS 20000

/* With as many inlined functions as asked for; every third text is missing. */
static struct symbolized example(size_t nr_inlined)
{
	static const char *const texts[] = {"rb_ary_each", "/usr/src/array.c", NULL, "", "caf\xc3\xa9 \xff"};
	struct symbolized ret = {
	    .module_address = 0x1234,
	    .offset = 0x56,
	    .function = "main",
	    .file = nr_inlined % 2 ? NULL : "main.c",
	    .line = 7,
	    .nr_inlined = nr_inlined,
	};

	for (size_t i = 0; i < nr_inlined; i++)
		ret.inlined[i] = (struct symbolized_function){texts[i % 5], texts[(i + 1) % 5], (int)i};
	return ret;
}

static void assert_same_text(const char *a, const char *b)
{
	assert_int_equal(a == NULL, b == NULL);
	if (a)
		assert_string_equal(a, b);
}

static void test_answer(void **state)
{
	(void)state;
	for (size_t nr_inlined = 0; nr_inlined <= SYMBOLIZED_INLINED_MAX; nr_inlined++) {
		const struct symbolized made = example(nr_inlined);
		struct symbol_answer_head *answer = symbol_answer_make(&made, nr_inlined == 3);
		struct symbolized read;

		assert_non_null(answer);
		assert_int_equal(answer->silent, nr_inlined == 3);
		assert_true(symbol_answer_read(answer, answer->length, &read));
		assert_int_equal(read.module_address, made.module_address);
		assert_int_equal(read.offset, made.offset);
		assert_same_text(read.function, made.function);
		assert_same_text(read.file, made.file);
		assert_int_equal(read.line, made.line);
		assert_int_equal(read.nr_inlined, nr_inlined);
		for (size_t i = 0; i < nr_inlined; i++) {
			assert_same_text(read.inlined[i].function, made.inlined[i].function);
			assert_same_text(read.inlined[i].file, made.inlined[i].file);
			assert_int_equal(read.inlined[i].line, made.inlined[i].line);
		}
		free(answer);
	}
}

static void test_too_long(void **state)
{
	char *name = malloc(SYMBOL_ANSWER_MAX + 1);
	struct symbolized made = {.function = name};

	(void)state;
	assert_non_null(name);
	memset(name, 'a', SYMBOL_ANSWER_MAX);
	name[SYMBOL_ANSWER_MAX] = '\0';
	assert_null(symbol_answer_make(&made, false));
	free(name);
}

/* Whether a text, with its end, is in the bytes. */
static void check_inside(const char *text, const char *bytes, size_t length)
{
	if (!text)
		return;
	assert_true(text >= bytes && text < bytes + length);
	assert_true(memchr(text, '\0', (size_t)(bytes + length - text)) != NULL);
}

static void test_damaged(void **state)
{
	const struct symbolized made = example(6);
	struct symbol_answer_head *answer = symbol_answer_make(&made, false);
	uint64_t seed = 1205;
	size_t accepted = 0;

	(void)state;
	assert_non_null(answer);
	for (size_t round = 0; round < ROUNDS; round++) {
		/* Exactly as large, so that a sanitizer sees what is read beyond. */
		const size_t length = round % 4 ? answer->length : random_next(&seed) % (answer->length + 1);
		char *bytes = malloc(length + (length == 0));
		struct symbolized read;

		assert_non_null(bytes);
		memcpy(bytes, answer, length);
		for (size_t i = random_next(&seed) % 4; i > 0 && length > 0; i--)
			bytes[random_next(&seed) % length] = (char)(random_next(&seed) >> 8);
		if (symbol_answer_read(bytes, length, &read)) {
			accepted++;
			check_inside(read.function, bytes, length);
			check_inside(read.file, bytes, length);
			for (size_t i = 0; i < read.nr_inlined; i++) {
				check_inside(read.inlined[i].function, bytes, length);
				check_inside(read.inlined[i].file, bytes, length);
			}
		}
		free(bytes);
	}
	assert_true(accepted > 0 && accepted < ROUNDS);
	free(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_answer),
	    cmocka_unit_test(test_too_long),
	    cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
