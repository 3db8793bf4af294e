/* Which macros of Ruby's a layout is given, by its version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/constants.h"

/* Of "2.0.0", or of "2.0.0p648 (…": its description then. */
static struct layout *layout_of(const char *release)
{
	struct layout *layout = layout_create();

	assert_non_null(layout);
	layout->version = strndup(release, strspn(release, "0123456789."));
	if (strcmp(layout->version, release) != 0)
		assert_true(asprintf(&layout->description, "ruby %s", release) > 0);
	constants_add(layout);
	return layout;
}

static size_t macros(const char *version)
{
	struct layout *layout = layout_of(version);
	size_t count = 0;

	for (size_t i = 0; i < LAYOUT_ENUMERATORS; i++) {
		assert_int_equal(layout->enumerators[i].present, layout->enumerators[i].is_macro);
		count += layout->enumerators[i].present;
	}
	layout_destroy(layout);
	return count;
}

static int64_t value_of(const char *version, enum layout_enumerator_id id)
{
	struct layout *layout = layout_of(version);
	int64_t value = layout->enumerators[id].present ? layout->enumerators[id].value : -1;

	layout_destroy(layout);
	return value;
}

static void test_series(void **state)
{
	(void)state;
	assert_int_equal(macros("1.9.2"), 0);
	assert_int_equal(macros("1.9.3"), 27);
	assert_int_equal(macros("2.2.10"), 29);
	assert_int_equal(macros("2.3.8"), 19);
	assert_int_equal(macros("2.4.0"), 5);
	assert_int_equal(macros("2.10.1"), 7);
	assert_int_equal(macros("4.0.5"), 11);
	assert_int_equal(macros("10.0.0"), 12);
	assert_int_equal(macros("2.3"), 0);
	assert_int_equal(macros("2.3.0.1"), 0);
}

/* As these Rubies have them (gen/constants.c names the files). */
static void test_values(void **state)
{
	(void)state;
	assert_int_equal(value_of("2.3.8", E_VM_FRAME_MAGIC_DUMMY), 0xc1);
	assert_int_equal(value_of("2.0.0", E_VM_FRAME_FLAG_FINISH), 0x200);
	assert_int_equal(value_of("1.9.3", E_VM_FRAME_FLAG_FINISH), -1);
	assert_int_equal(value_of("2.2.10", E_RUBY_ENCODING_SHIFT), 22);
	assert_int_equal(value_of("2.2.10", E_VM_FRAME_MAGIC_DUMMY), -1);
	assert_int_equal(value_of("2.0.0", E_VM_FRAME_MAGIC_RESCUE), 0xb1);
	assert_int_equal(value_of("2.0.0p648 (2015-12-16)", E_VM_FRAME_MAGIC_RESCUE), 0xb1);
	assert_int_equal(value_of("2.0.0p576 (2014-09-19)", E_VM_FRAME_MAGIC_RESCUE), 0xb1);
	assert_int_equal(value_of("2.0.0p481 (2014-05-08)", E_VM_FRAME_MAGIC_RESCUE), -1);
	assert_int_equal(value_of("2.1.2p95 (2014-05-08)", E_VM_FRAME_MAGIC_RESCUE), -1);
	assert_int_equal(value_of("2.1.3p242 (2014-09-19)", E_VM_FRAME_MAGIC_RESCUE), 0xb1);
	assert_int_equal(value_of("2.3.8p459 (2018-10-18)", E_VM_FRAME_MAGIC_RESCUE), 0xb1);
	assert_int_equal(value_of("1.9.3", E_VM_FRAME_MAGIC_RESCUE), -1);
	assert_int_equal(value_of("1.9.3", E_VM_FRAME_MAGIC_FINISH), 0x51);
	assert_int_equal(value_of("2.2.10", E_RSTRING_EMBED_LEN_MASK), 0x7c000);
	assert_int_equal(value_of("2.2.10", E_RSTRING_NOEMBED), 0x2000);
	assert_int_equal(value_of("2.2.10", E_RARRAY_EMBED_LEN_MASK), 0x18000);
	assert_int_equal(value_of("2.3.0", E_RARRAY_EMBED_LEN_MASK), -1);
	assert_int_equal(value_of("3.1.7", E_RARRAY_SHARED_ROOT_FLAG), 1 << 17);
	assert_int_equal(value_of("3.2.0", E_RARRAY_SHARED_ROOT_FLAG), 1 << 24);
	assert_int_equal(value_of("2.1.10", E_STR_NOFREE), -1);
	assert_int_equal(value_of("3.4.9", E_RICLASS_IS_ORIGIN), 1 << 12);
	assert_int_equal(value_of("4.0.0", E_RICLASS_IS_ORIGIN), -1);
	assert_int_equal(value_of("2.4.10", E_ISEQ_NOT_LOADED_YET), 1 << 16);
	assert_int_equal(value_of("2.5.0", E_ISEQ_NOT_LOADED_YET), 1 << 17);
	assert_int_equal(value_of("3.1.7", E_ISEQ_MARKABLE_ISEQ), 1 << 20);
	assert_int_equal(value_of("3.2.0", E_ISEQ_MARKABLE_ISEQ), -1);
	assert_int_equal(value_of("2.7.8", E_METHOD_ENTRY_INVALIDATED), -1);
	assert_int_equal(value_of("3.1.7", E_VM_CALLCACHE_UNMARKABLE), 1 << 16);
	assert_int_equal(value_of("3.4.9", E_VM_CALLCACHE_UNMARKABLE), 1 << 11);
	assert_int_equal(value_of("4.0.0", E_VM_CALLCACHE_UNMARKABLE), 1 << 20);
	assert_int_equal(value_of("3.2.11", E_VM_CALLCACHE_SUPER), -1);
}

/* What the DWARF has counts. */
static void test_enumerator_first(void **state)
{
	struct layout *layout = layout_create();

	(void)state;
	assert_non_null(layout);
	layout->version = strdup("2.3.8");
	layout->enumerators[E_VM_FRAME_MAGIC_MASK] = (struct layout_number){.present = true, .value = 5};
	constants_add(layout);
	assert_int_equal(layout->enumerators[E_VM_FRAME_MAGIC_MASK].value, 5);
	assert_false(layout->enumerators[E_VM_FRAME_MAGIC_MASK].is_macro);
	assert_true(layout->enumerators[E_VM_FRAME_MAGIC_TOP].is_macro);
	layout_destroy(layout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_series),
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_enumerator_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
