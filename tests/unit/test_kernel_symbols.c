/* The names of the kernel's functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <unistd.h>

#include "native/kernel_symbols.h"

/* Reads a file with a text. */
static struct error *read_text(const char *text, struct kernel_symbols **ret)
{
	char path[] = "/tmp/rbdump-symbols-XXXXXX";
	struct error *error;
	FILE *file = fdopen(mkstemp(path), "w");

	fputs(text, file);
	fclose(file);
	error = kernel_symbols_read(path, ret);
	unlink(path);
	return error;
}

static void test_symbols(void **state)
{
	struct kernel_symbols *symbols;
	uint64_t start = 0;

	(void)state;
	assert_null(read_text("ffffffff81000020 t second\n"
			      "ffffffff81000000 T first\n"
			      "ffffffff81000020 T second_too\n"
			      "ffffffff81000010 d no_code\n"
			      "ffffffffc0000000 t of_module\t[module]\n",
			      &symbols));
	assert_null(kernel_symbols_find(symbols, 0xffffffff80ffffff, &start));
	assert_string_equal(kernel_symbols_find(symbols, 0xffffffff81000000, &start), "first");
	assert_string_equal(kernel_symbols_find(symbols, 0xffffffff8100001f, &start), "first");
	assert_true(start == 0xffffffff81000000);
	assert_string_equal(kernel_symbols_find(symbols, 0xffffffff81000020, &start), "second");
	assert_string_equal(kernel_symbols_find(symbols, 0xffffffffc0000042, &start), "of_module");
	assert_true(start == 0xffffffffc0000000);
	kernel_symbols_destroy(symbols);
}

static void test_hidden(void **state)
{
	struct kernel_symbols *symbols;
	struct error *error = read_text("0000000000000000 T first\n0000000000000000 t second\n", &symbols);

	(void)state;
	assert_non_null(error);
	assert_int_equal(error->status, EXIT_NO_PERMISSION);
	error_destroy(error);
}

static void test_damaged(void **state)
{
	struct kernel_symbols *symbols;
	uint64_t start;

	(void)state;
	assert_null(read_text("ffffffff81000000 T first\nnonsense\nffffffff81000010 T second\n", &symbols));
	assert_string_equal(kernel_symbols_find(symbols, 0xffffffff81000020, &start), "first");
	kernel_symbols_destroy(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_symbols),
	    cmocka_unit_test(test_hidden),
	    cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
