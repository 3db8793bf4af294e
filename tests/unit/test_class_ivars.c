/* Classes with more instance variables than are searched: what may be beyond is not known, and not said to be missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ruby/class.h"
#include "synthetic.h"

enum { SEARCHED = 256, VALUE = 0x1230 };

static void assert_ivar(struct synthetic *s, uint64_t klass, const char *name, uint64_t value, bool known)
{
	struct access access = ruby_access(&s->ruby);

	assert_int_equal(class_ivar(&s->ruby, &access, klass, name), value);
	assert_int_equal(!access.failed, known);
}

/* Until 3.1: a table; the last one is the path of the class. */
static uint64_t class_with_table(struct synthetic *s, size_t count, uint64_t path)
{
	const uint64_t size = (uint64_t)s->layout->sizes[S_st_entry].value, other = synthetic_id(s, "@a");
	const uint64_t klass = synthetic_object(s, S_class, synthetic_enum(s, E_RUBY_T_CLASS));
	uint64_t ext = synthetic_struct(s, S_classext), table = synthetic_struct(s, S_st);
	uint64_t entries = synthetic_allocate(s, count * size);

	for (size_t i = 0; i < count; i++) {
		synthetic_set(s, entries + i * size, F_st_entry_hash, i);
		synthetic_set(s, entries + i * size, F_st_entry_key,
			      i == count - 1 ? synthetic_id(s, "__classpath__") : other);
		synthetic_set(s, entries + i * size, F_st_entry_record, path);
	}
	synthetic_set(s, klass, F_class_ptr, ext);
	synthetic_set(s, ext, F_classext_iv_tbl, table);
	synthetic_set(s, table, F_st_entries, entries);
	synthetic_set(s, table, F_st_entries_bound, count);
	synthetic_without(s, F_class_slot_classpath);
	return klass;
}

static void test_table(void **state)
{
	struct synthetic *s = *state;
	const uint64_t path = synthetic_string(s, "Late");
	const uint64_t all = class_with_table(s, SEARCHED, path), more = class_with_table(s, SEARCHED + 1, path);
	struct access access = ruby_access(&s->ruby);
	struct text text = {0};

	assert_ivar(s, all, "__classpath__", path, true);
	assert_ivar(s, all, "__none__", 0, true);
	assert_ivar(s, more, "__classpath__", 0, false);
	/* It is not called anonymous. */
	class_add_name(&s->ruby, &access, all, &text);
	assert_string_equal(text.data, "Late");
	text_clear(&text);
	access = ruby_access(&s->ruby);
	class_add_name(&s->ruby, &access, more, &text);
	assert_true(!text.data || !text.data[0]);
	text_clear(&text);
}

/* 3.2: a chain of shapes, from the last one to the root, whose parent is no shape. */
static void test_shapes(void **state)
{
	enum { SHAPES = SEARCHED + 2 };
	struct synthetic *s = *state;
	const uint64_t size = (uint64_t)s->layout->sizes[S_shape].value;
	const uint64_t name = synthetic_id(s, "__attached__"), other = synthetic_id(s, "@a");
	const uint64_t shapes = synthetic_allocate(s, SHAPES * size), ivars = synthetic_allocate(s, SHAPES * 8);
	const uint64_t klass = synthetic_object(s, S_class, synthetic_enum(s, E_RUBY_T_CLASS));
	const uint64_t ext = synthetic_struct(s, S_classext);

	synthetic_with(s, F_classext_iv_ptr);
	synthetic_with(s, F_classext_shape_id);
	s->ruby.vm = synthetic_struct(s, S_vm);
	synthetic_set(s, s->ruby.vm, F_vm_next_shape_id, SHAPES);
	synthetic_set(s, s->ruby.vm, F_vm_shape_list, shapes);
	for (uint64_t i = 0; i < SHAPES; i++) {
		synthetic_set(s, shapes + i * size, F_shape_parent_id, i == 0 ? UINT32_MAX : i - 1);
		synthetic_set(s, shapes + i * size, F_shape_type, synthetic_enum(s, E_SHAPE_IVAR) + (i == 0));
		synthetic_set(s, shapes + i * size, F_shape_edge_name, i == 1 ? name : other);
		synthetic_set(s, shapes + i * size, F_shape_next_iv_index, i);
	}
	synthetic_put_word(s, ivars, VALUE);
	synthetic_set(s, klass, F_class_ptr, ext);
	synthetic_set(s, ext, F_classext_iv_ptr, ivars);
	for (uint64_t last = SEARCHED - 1; last < SHAPES; last++) {
		synthetic_set(s, ext, F_classext_shape_id, last);
		assert_ivar(s, klass, "__attached__", last > SEARCHED ? 0 : VALUE, last <= SEARCHED);
		/* That there is none is known if all were searched. */
		assert_ivar(s, klass, "__none__", 0, last < SEARCHED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_table, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_shapes, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
