/* Names of classes and modules, as several eras of Ruby store them; the size of a class. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ruby/class.h"
#include "ruby/class_size.h"
#include "synthetic.h"

static void assert_path(struct synthetic *s, uint64_t klass, const char *expected, bool permanent)
{
	struct access access = ruby_access(&s->ruby);
	struct bytes path;
	bool found;

	class_path(&s->ruby, &access, klass, &path, &found);
	assert_false(access.failed);
	assert_int_equal(found, permanent);
	if (expected)
		assert_true(value_bytes_are(&access, path, expected));
	else
		assert_int_equal(path.address, 0);
}

/* What a method of that owner is called: as Ruby 3.4 does, and as rbdump does. Either may be "". */
static void assert_prefixes(struct synthetic *s, uint64_t owner, const char *by_ruby, const char *by_us)
{
	struct access access = ruby_access(&s->ruby);
	struct text text = {0};
	char *expected;

	text_format(&text, "(");
	class_add_ruby_prefix(&s->ruby, &access, owner, &text);
	text_format(&text, ")(");
	access = ruby_access(&s->ruby);
	class_add_prefix(&s->ruby, &access, owner, &text);
	text_format(&text, ")");
	assert_true(asprintf(&expected, "(%s)(%s)", by_ruby, by_us) > 0);
	assert_string_equal(text.data, expected);
	free(expected);
	text_clear(&text);
}

static uint64_t new_class(struct synthetic *s, const char *path)
{
	return synthetic_class(s, E_RUBY_T_CLASS, path, path && path[0] != '#');
}

static uint64_t new_module(struct synthetic *s, const char *path)
{
	return synthetic_class(s, E_RUBY_T_MODULE, path, path && path[0] != '#');
}

static uint64_t new_object(struct synthetic *s)
{
	return synthetic_object(s, S_class, 0x21);
}

static void set_super(struct synthetic *s, uint64_t klass, uint64_t super)
{
	synthetic_set(s, klass, F_class_super, super);
}

static void test_paths(void **state)
{
	struct synthetic *s = *state;
	uint64_t klass = new_class(s, NULL);

	assert_path(s, new_class(s, "Foo::Bar"), "Foo::Bar", true);
	assert_path(s, new_class(s, "#<Class:0x0000>::Foo"), "#<Class:0x0000>::Foo", false);
	assert_path(s, klass, NULL, false);
	/* Without a path there is nothing permanent about it. */
	synthetic_set(s, klass, F_class_slot_permanent, 1);
	assert_path(s, klass, NULL, false);
	synthetic_set(s, klass, F_class_slot_classpath, synthetic_enum(s, E_RUBY_Qnil));
	assert_path(s, klass, NULL, false);
}

static void test_classes_and_modules(void **state)
{
	struct synthetic *s = *state;
	uint64_t included = synthetic_class(s, E_RUBY_T_ICLASS, "Wrong", true);

	assert_prefixes(s, new_class(s, "Foo::Bar"), "Foo::Bar#", "Foo::Bar#");
	assert_prefixes(s, new_module(s, "Kernel"), "Kernel#", "Kernel#");
	/* An included module stands for the module itself. */
	synthetic_set(s, included, F_basic_klass, new_module(s, "Enumerable"));
	assert_prefixes(s, included, "", "Enumerable#");
	/* In the middle of compaction. */
	assert_prefixes(s, synthetic_moved(s, new_class(s, "Foo")), "Foo#", "Foo#");
	synthetic_set(s, included, F_basic_klass, synthetic_moved(s, new_module(s, "Enumerable")));
	assert_prefixes(s, synthetic_moved(s, included), "", "Enumerable#");
}

static void test_singletons(void **state)
{
	struct synthetic *s = *state;
	uint64_t foo = new_class(s, "Foo"), of_foo = synthetic_singleton(s, foo), of_object, of_module, deep;

	assert_prefixes(s, of_foo, "Foo.", "Foo.");
	of_module = synthetic_singleton(s, new_module(s, "Kernel"));
	assert_prefixes(s, of_module, "Kernel.", "Kernel.");
	of_object = synthetic_singleton(s, new_object(s));
	set_super(s, of_object, foo);
	assert_prefixes(s, of_object, "", "#<instance of Foo>#");
	/* With modules included in between. */
	set_super(s, of_object, synthetic_class(s, E_RUBY_T_ICLASS, NULL, false));
	assert_prefixes(s, of_object, "", "#<instance of ?>#");
	/* Of the singleton class itself, and of an object's. */
	assert_prefixes(s, synthetic_singleton(s, of_foo), "", "#<singleton of Foo>.");
	deep = synthetic_singleton(s, synthetic_singleton(s, of_foo));
	assert_prefixes(s, deep, "", "#<singleton of #<singleton of Foo>>.");
	set_super(s, of_object, foo);
	assert_prefixes(s, synthetic_singleton(s, of_object), "", "#<instance of Foo>.");
	assert_prefixes(s, synthetic_singleton(s, new_class(s, NULL)), "", "#<anonymous class>.");
	assert_prefixes(s, synthetic_moved(s, synthetic_singleton(s, synthetic_moved(s, foo))), "Foo.", "Foo.");
	set_super(s, of_object, synthetic_moved(s, foo));
	assert_prefixes(s, of_object, "", "#<instance of Foo>#");
}

static void test_anonymous(void **state)
{
	struct synthetic *s = *state;
	uint64_t foo = new_class(s, "Foo"), klass = new_class(s, NULL), below = new_class(s, NULL);
	uint64_t included = synthetic_class(s, E_RUBY_T_ICLASS, NULL, false), singleton = synthetic_singleton(s, klass);

	assert_prefixes(s, klass, "", "#<anonymous class>#");
	assert_prefixes(s, new_module(s, NULL), "", "#<anonymous module>#");
	set_super(s, klass, foo);
	assert_prefixes(s, klass, "", "#<anonymous subclass of Foo>#");
	/* Past an included module and a singleton class. */
	set_super(s, singleton, foo);
	set_super(s, included, singleton);
	set_super(s, klass, included);
	assert_prefixes(s, klass, "", "#<anonymous subclass of Foo>#");
	set_super(s, below, klass);
	assert_prefixes(s, below, "", "#<anonymous subclass of #<anonymous subclass of Foo>>#");
	assert_prefixes(s, synthetic_singleton(s, klass), "", "#<anonymous subclass of Foo>.");
}

/* Addresses differ from process to process: names must not. */
static void test_temporary_paths(void **state)
{
	struct synthetic *s = *state;

	assert_prefixes(s, new_class(s, "#<Class:0x00007f12ab34cd56>::Foo"), "", "#<Class>::Foo#");
	assert_prefixes(s, new_module(s, "#<Module:0x0123456789abcdef>::A::B"), "", "#<Module>::A::B#");
	assert_prefixes(s, synthetic_singleton(s, new_class(s, "#<Class:0x1>::Foo")), "", "#<Class>::Foo.");
	/* What only looks like one in part, or is cut short. */
	assert_prefixes(s, new_class(s, "#<Class:0x>::Foo"), "", "#<Class:0x>::Foo#");
	assert_prefixes(s, new_class(s, "#<Class:"), "", "#<Class:#");
	assert_prefixes(s, new_class(s, "#<\xe3\x81\x82:0xf>"), "", "#<\xe3\x81\x82>#");
	assert_prefixes(s, new_class(s, "#<\xff:0xf>"), "", "#<\\xFF>#");
}

static uint64_t new_refinement(struct synthetic *s, uint64_t refined, uint64_t defined_at)
{
	uint64_t module = new_module(s, NULL), ivars = synthetic_allocate(s, 16);

	synthetic_put_word(s, ivars, refined);
	synthetic_put_word(s, ivars + 8, defined_at);
	synthetic_set(s, module, F_class_slot_iv_ptr, ivars);
	set_super(s, module, refined);
	return module;
}

/* 3.2 and later: by the place of its instance variables, and a superclass, which no other module has. */
static void test_refinements(void **state)
{
	struct synthetic *s = *state;
	uint64_t string = new_class(s, "String"), extensions = new_module(s, "Extensions"), other;
	uint64_t refinement = new_refinement(s, string, extensions);

	assert_prefixes(s, refinement, "", "#<refinement String of Extensions>#");
	assert_prefixes(s, new_refinement(s, synthetic_singleton(s, string), extensions), "",
			"#<refinement #<singleton of String> of Extensions>#");
	/* In the middle of compaction, some references lead to old places, and some do not. */
	other = new_refinement(s, synthetic_moved(s, string), synthetic_moved(s, extensions));
	assert_prefixes(s, synthetic_moved(s, other), "", "#<refinement String of Extensions>#");
	set_super(s, other, string);
	assert_prefixes(s, other, "", "#<refinement String of Extensions>#");
	/* A module that has instance variables, and is none. */
	other = new_refinement(s, string, extensions);
	set_super(s, other, 0);
	assert_prefixes(s, other, "", "#<anonymous module>#");
	set_super(s, other, new_class(s, "Integer"));
	assert_prefixes(s, other, "", "#<anonymous module>#");
	other = new_refinement(s, string, new_object(s));
	assert_prefixes(s, other, "", "#<anonymous module>#");
	/* From 4.0 the superclass is kept elsewhere. */
	synthetic_set(s, refinement, F_class_slot_super, string);
	set_super(s, refinement, 0);
	assert_prefixes(s, refinement, "", "#<anonymous module>#");
	synthetic_without(s, F_class_super);
	assert_prefixes(s, refinement, "", "#<refinement String of Extensions>#");
}

/* 4.0: the instance variables of a class are in an object of their own, or where that says. */
static void test_refinements_fields(void **state)
{
	struct synthetic *s = *state;
	uint64_t string = new_class(s, "String"), extensions = new_module(s, "Extensions");
	uint64_t refinement = new_refinement(s, string, extensions), ivars, fields;
	struct access access = ruby_access(&s->ruby);

	ivars = access_member(&access, refinement, F_class_slot_iv_ptr);
	fields = synthetic_object(s, S_fields, synthetic_enum(s, E_RUBY_T_IMEMO) | synthetic_enum(s, E_ROBJECT_HEAP));
	synthetic_with(s, F_class_slot_fields);
	synthetic_without(s, F_class_slot_iv_ptr);
	assert_prefixes(s, refinement, "", "#<anonymous module>#");
	synthetic_set(s, refinement, F_class_slot_fields, fields);
	synthetic_set(s, fields, F_fields_ptr, ivars);
	assert_prefixes(s, refinement, "", "#<refinement String of Extensions>#");
	synthetic_set(s, refinement, F_class_slot_fields, synthetic_moved(s, fields));
	assert_prefixes(s, refinement, "", "#<refinement String of Extensions>#");
	fields = synthetic_object(s, S_fields, synthetic_enum(s, E_RUBY_T_IMEMO));
	synthetic_set(s, refinement, F_class_slot_fields, fields);
	assert_prefixes(s, refinement, "", "#<anonymous module>#");
	synthetic_put_word(s, access_address(&access, fields, F_fields_embed), string);
	synthetic_put_word(s, access_address(&access, fields, F_fields_embed) + 8, extensions);
	assert_prefixes(s, refinement, "", "#<refinement String of Extensions>#");
}

/* Hostile: names that have no end. */
static void test_circles(void **state)
{
	struct synthetic *s = *state;
	uint64_t klass = new_class(s, NULL), singleton = synthetic_singleton(s, 0), refinement, ivars;
	struct access access;
	struct text text = {0};

	set_super(s, klass, klass);
	synthetic_set(s, singleton, F_class_slot_attached_object, singleton);
	set_super(s, singleton, singleton);
	refinement = new_refinement(s, klass, klass);
	access = ruby_access(&s->ruby);
	class_add_prefix(&s->ruby, &access, klass, &text);
	class_add_prefix(&s->ruby, &access, singleton, &text);
	class_add_prefix(&s->ruby, &access, refinement, &text);
	assert_false(access.failed);
	assert_true(text.length < 4096);
	assert_non_null(strstr(text.data, "#<anonymous subclass of #<anonymous subclass of "));
	assert_non_null(strstr(text.data, "#<singleton of #<singleton of "));
	text_clear(&text);
	/* A refinement of itself, defined in itself: two ways down at each step. */
	refinement = new_refinement(s, 0, 0);
	access = ruby_access(&s->ruby);
	ivars = access_member(&access, refinement, F_class_slot_iv_ptr);
	synthetic_put_word(s, ivars, refinement);
	synthetic_put_word(s, ivars + 8, refinement);
	set_super(s, refinement, refinement);
	access = ruby_access(&s->ruby);
	class_add_prefix(&s->ruby, &access, refinement, &text);
	assert_non_null(strstr(text.data, "#<refinement #<refinement "));
	assert_true(text.length < 100000);
	text_clear(&text);
}

/* What is no class has no name; what cannot be read costs the whole prefix. */
static void test_no_class(void **state)
{
	struct synthetic *s = *state;
	uint64_t klass = new_class(s, "Foo"), singleton;

	assert_prefixes(s, 0, "", "");
	assert_prefixes(s, synthetic_enum(s, E_RUBY_Qnil), "", "");
	assert_prefixes(s, synthetic_string(s, "Foo"), "", "");
	assert_prefixes(s, NOWHERE, "", "");
	synthetic_set(s, klass, F_class_slot_classpath, NOWHERE);
	assert_prefixes(s, klass, "", "");
	singleton = synthetic_singleton(s, klass);
	assert_prefixes(s, singleton, "", "");
	synthetic_set(s, klass, F_class_slot_classpath, synthetic_class(s, E_RUBY_T_CLASS, "no String", true));
	assert_prefixes(s, klass, "", "");
}

/* Hostile: each step down has two ways, and at the end of each is the longest name that there is. */
static void test_much_text(void **state)
{
	struct synthetic *s = *state;
	char *name = test_malloc(VALUE_STRING_MAX + 1);
	uint64_t at;
	struct access access;
	struct text text = {0};

	memset(name, 'A', VALUE_STRING_MAX);
	name[VALUE_STRING_MAX] = '\0';
	at = new_class(s, name);
	for (int i = 0; i < 8; i++)
		at = new_refinement(s, at, at);
	access = ruby_access(&s->ruby);
	class_add_prefix(&s->ruby, &access, at, &text);
	assert_true(text.length < 4 * VALUE_STRING_MAX);
	text_clear(&text);
	test_free(name);
}

/* ---- classes until 3.1: instance variables in an st_table, by ID */

/* A class of such a Ruby, of RUBY_T_ type `type`, with these instance variables; a name of NULL is a deleted one. */
static uint64_t old_class(struct synthetic *s, uint64_t flags, const char *const *names, const uint64_t *values,
			  size_t count)
{
	uint64_t klass = synthetic_object(s, S_class, flags), ext = synthetic_struct(s, S_classext);
	uint64_t table = synthetic_struct(s, S_st), size = (uint64_t)s->layout->sizes[S_st_entry].value;
	uint64_t entries = synthetic_allocate(s, count * size + 1);

	for (size_t i = 0; i < count; i++) {
		synthetic_set(s, entries + i * size, F_st_entry_hash, names[i] ? 0x1234 + i : UINT64_MAX);
		/* The remains of a deleted entry look like any other. */
		synthetic_set(s, entries + i * size, F_st_entry_key,
			      synthetic_id(s, names[i] ? names[i] : "__classpath__"));
		synthetic_set(s, entries + i * size, F_st_entry_record, values[i]);
	}
	synthetic_set(s, klass, F_class_ptr, ext);
	synthetic_set(s, ext, F_classext_iv_tbl, table);
	synthetic_set(s, table, F_st_entries, entries);
	synthetic_set(s, table, F_st_entries_bound, count);
	return klass;
}

static int set_up_old(void **state)
{
	static const enum layout_member_id newer[] = {F_class_slot_classpath, F_class_slot_permanent,
						      F_class_slot_attached_object, F_class_slot_iv_ptr,
						      F_class_slot_super};
	struct synthetic *s;

	synthetic_set_up(state);
	s = *state;
	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
		synthetic_without(s, newer[i]);
	return 0;
}

static uint64_t old_named(struct synthetic *s, enum layout_enumerator_id type, const char *path)
{
	static const char *const names[] = {"__classpath__"};
	uint64_t value = synthetic_string(s, path);

	return old_class(s, synthetic_enum(s, type), names, &value, 1);
}

static uint64_t old_singleton(struct synthetic *s, uint64_t of)
{
	static const char *const names[] = {"__attached__"};

	return old_class(s, synthetic_enum(s, E_RUBY_T_CLASS) | synthetic_enum(s, E_RUBY_FL_SINGLETON), names, &of, 1);
}

static void test_old_paths(void **state)
{
	static const char *const deleted[] = {"@a", NULL, "@b", "__classpath__"};
	static const char *const temporary[] = {"@classpath", "__tmp_classpath__"};
	static const char *const none[] = {"@a", NULL};
	struct synthetic *s = *state;
	uint64_t values[4], klass, type = synthetic_enum(s, E_RUBY_T_CLASS);

	values[0] = values[1] = values[2] = synthetic_string(s, "Wrong");
	values[3] = synthetic_string(s, "Right");
	klass = old_class(s, type, deleted, values, 4);
	assert_path(s, klass, "Right", true);
	assert_prefixes(s, klass, "Right#", "Right#");
	values[1] = synthetic_string(s, "#<Class:0x00007f0011>::Foo");
	klass = old_class(s, type, temporary, values, 2);
	assert_path(s, klass, "#<Class:0x00007f0011>::Foo", false);
	assert_prefixes(s, klass, "", "#<Class>::Foo#");
	klass = old_class(s, type, none, values, 2);
	assert_path(s, klass, NULL, false);
	assert_prefixes(s, klass, "", "#<anonymous class>#");
	/* A class that never had one has no table. */
	klass = synthetic_object(s, S_class, type);
	synthetic_set(s, klass, F_class_ptr, synthetic_struct(s, S_classext));
	assert_path(s, klass, NULL, false);
}

/* Until 2.6, C's own classes have no path until somebody asks for it, but a Symbol. */
static void test_class_id(void **state)
{
	static const char *const names[] = {"@a", "__classid__"};
	static const char *const anonymous[] = {"__tmp_classpath__", "__classid__"};
	struct synthetic *s = *state;
	uint64_t id = synthetic_id(s, "Array"), type = synthetic_enum(s, E_RUBY_T_CLASS);
	uint64_t flag = synthetic_enum(s, E_RUBY_SYMBOL_FLAG), shift = synthetic_enum(s, E_RUBY_SPECIAL_SHIFT);
	uint64_t values[] = {0, id << shift | flag};

	assert_path(s, old_class(s, type, names, values, 2), "Array", true);
	/* One that stands below an anonymous module. */
	values[0] = synthetic_string(s, "#<Module:0x00007f0011>::Foo");
	assert_path(s, old_class(s, type, anonymous, values, 2), "#<Module:0x00007f0011>::Foo", false);
	values[1] = id << shift;
	assert_path(s, old_class(s, type, names, values, 2), NULL, false);
	values[1] = id << shift | flag;
	synthetic_without_enumerator(s, E_RUBY_SYMBOL_FLAG);
	assert_path(s, old_class(s, type, names, values, 2), NULL, false);
}

/* The table's first used entry, and its end, are taken from it. */
static void test_old_bounds(void **state)
{
	static const char *const names[] = {"__classpath__", "__classpath__", "__classpath__"};
	struct synthetic *s = *state;
	const uint64_t values[] = {synthetic_string(s, "Zero"), synthetic_string(s, "One"), synthetic_string(s, "Two")};
	uint64_t klass = old_class(s, synthetic_enum(s, E_RUBY_T_CLASS), names, values, 3), table;
	struct access access = ruby_access(&s->ruby);
	struct bytes path;
	bool permanent;

	table = access_member(&access, access_member(&access, klass, F_class_ptr), F_classext_iv_tbl);
	assert_path(s, klass, "Zero", true);
	synthetic_set(s, table, F_st_entries_start, 2);
	assert_path(s, klass, "Two", true);
	synthetic_set(s, table, F_st_entries_start, 3);
	assert_path(s, klass, NULL, false);
	/* Hostile: more entries than there is memory. */
	synthetic_set(s, table, F_st_entries_start, 0);
	synthetic_set(s, table, F_st_entries_bound, UINT64_MAX);
	assert_path(s, klass, "Zero", true);
	synthetic_set(s, table, F_st_entries, NOWHERE);
	access = ruby_access(&s->ruby);
	class_path(&s->ruby, &access, klass, &path, &permanent);
	assert_true(access.failed);
	assert_int_equal(path.address, 0);
	assert_false(permanent);
}

/* An ID that has no name, as of a variable that is being made, does not hide those behind it. */
/* 3.2: a shape's ID stands in the flags, in as many bits as a shape has for it; a layout can say any number. */
static void test_widths_of_shapes(void **state)
{
	static const uint32_t widths[] = {0, 1, 8, 9, 64, 4096};
	struct synthetic *s = *state;
	uint64_t klass = synthetic_object(s, S_class, synthetic_enum(s, E_RUBY_T_CLASS));

	s->ruby.vm = synthetic_struct(s, S_vm);
	synthetic_set(s, s->ruby.vm, F_vm_next_shape_id, UINT64_MAX);
	synthetic_with(s, F_classext_iv_ptr);
	synthetic_without(s, F_class_slot_classpath);
	synthetic_without(s, F_classext_shape_id);
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		struct access access = ruby_access(&s->ruby);
		struct bytes path;
		bool permanent = true;

		s->layout->members[F_shape_parent_id].size = widths[i];
		class_path(&s->ruby, &access, klass, &path, &permanent);
		assert_false(permanent);
		assert_int_equal(path.length, 0);
	}
}

static void test_old_unnamed_id(void **state)
{
	static const char *const names[] = {"@a", "__classpath__"};
	struct synthetic *s = *state;
	const uint64_t values[] = {0, synthetic_string(s, "Foo")};
	uint64_t klass = old_class(s, synthetic_enum(s, E_RUBY_T_CLASS), names, values, 2);
	struct access access = ruby_access(&s->ruby);
	uint64_t table = access_member(&access, access_member(&access, klass, F_class_ptr), F_classext_iv_tbl);

	synthetic_set(s, access_member(&access, table, F_st_entries), F_st_entry_key, UINT64_MAX);
	assert_path(s, klass, "Foo", true);
}

/* Hostile: a refinement of itself, in itself, that has as many instance variables as are looked through. */
static void test_old_circles(void **state)
{
	enum { COUNT = 256 };
	const char *names[COUNT];
	uint64_t values[COUNT] = {0}, klass, table, entries, size;
	struct synthetic *s = *state;
	struct access access;
	struct text text = {0};

	for (size_t i = 0; i < COUNT; i++)
		names[i] = "@a";
	names[COUNT - 2] = "__refined_class__";
	names[COUNT - 1] = "__defined_at__";
	klass = old_class(s, synthetic_enum(s, E_RUBY_T_MODULE), names, values, COUNT);
	access = ruby_access(&s->ruby);
	size = (uint64_t)s->layout->sizes[S_st_entry].value;
	table = access_member(&access, access_member(&access, klass, F_class_ptr), F_classext_iv_tbl);
	entries = access_member(&access, table, F_st_entries);
	synthetic_set(s, entries + (COUNT - 2) * size, F_st_entry_record, klass);
	synthetic_set(s, entries + (COUNT - 1) * size, F_st_entry_record, klass);
	access = ruby_access(&s->ruby);
	class_add_prefix(&s->ruby, &access, klass, &text);
	assert_non_null(strstr(text.data, "#<refinement #<refinement "));
	/* Every step looks through all of them, twice. */
	assert_true(text.length < 1000);
	text_clear(&text);
}

static void test_old_singletons(void **state)
{
	struct synthetic *s = *state;
	uint64_t foo = old_named(s, E_RUBY_T_CLASS, "Foo"), of_foo = old_singleton(s, foo), of_object;

	assert_prefixes(s, of_foo, "Foo.", "Foo.");
	assert_prefixes(s, old_singleton(s, of_foo), "", "#<singleton of Foo>.");
	of_object = old_singleton(s, new_object(s));
	set_super(s, of_object, foo);
	assert_prefixes(s, of_object, "", "#<instance of Foo>#");
}

static void test_old_refinements(void **state)
{
	static const char *const names[] = {"@a", "__defined_at__", "__refined_class__"};
	struct synthetic *s = *state;
	const uint64_t values[] = {0, old_named(s, E_RUBY_T_MODULE, "Extensions"),
				   old_named(s, E_RUBY_T_CLASS, "String")};

	assert_prefixes(s, old_class(s, synthetic_enum(s, E_RUBY_T_MODULE), names, values, 3), "",
			"#<refinement String of Extensions>#");
	assert_prefixes(s, old_class(s, synthetic_enum(s, E_RUBY_T_MODULE), names, values, 2), "",
			"#<anonymous module>#");
	/* A class is no refinement, whatever variables it has. */
	assert_prefixes(s, old_class(s, synthetic_enum(s, E_RUBY_T_CLASS), names, values, 3), "",
			"#<anonymous class>#");
}

#define MODERN(test) cmocka_unit_test_setup_teardown(test, synthetic_set_up, synthetic_tear_down)
#define OLD(test)    cmocka_unit_test_setup_teardown(test, set_up_old, synthetic_tear_down)

static uint64_t size_of(struct synthetic *s, uint64_t klass)
{
	struct access access = ruby_access(&s->ruby);
	uint64_t steps = 1000, ret = 0;

	assert_true(class_size(&access, klass, access_member(&access, klass, F_basic_flags), 0, &steps, &ret));
	return ret;
}

/* In 4.0, Ruby counts the table of class variables as long as it is no object. */
static void test_size_of_class_variables(void **state)
{
	struct synthetic *s = *state;
	const uint64_t klass = new_class(s, "A"), table = synthetic_struct(s, S_id_table);
	const uint64_t ext = synthetic_struct(s, S_classext);
	uint64_t before;

	synthetic_with(s, F_classext_box);
	synthetic_set(s, klass, F_class_ptr, ext);
	before = size_of(s, klass);
	synthetic_set(s, table, F_id_table_capa, 4);
	synthetic_set(s, ext, F_classext_cvc_tbl, table);
	assert_int_equal(size_of(s, klass), before);
	synthetic_without_enumerator(s, E_imemo_cvar_entry);
	assert_int_equal(size_of(s, klass), before + (uint64_t)(s->layout->sizes[S_id_table].value +
								4 * s->layout->sizes[S_id_item].value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    MODERN(test_paths),
	    MODERN(test_classes_and_modules),
	    MODERN(test_singletons),
	    MODERN(test_anonymous),
	    MODERN(test_temporary_paths),
	    MODERN(test_refinements),
	    MODERN(test_refinements_fields),
	    MODERN(test_circles),
	    MODERN(test_much_text),
	    MODERN(test_no_class),
	    MODERN(test_size_of_class_variables),
	    OLD(test_old_paths),
	    OLD(test_class_id),
	    OLD(test_old_bounds),
	    MODERN(test_widths_of_shapes),
	    OLD(test_old_unnamed_id),
	    OLD(test_old_circles),
	    OLD(test_old_singletons),
	    OLD(test_old_refinements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
