#include "classes.h"

#include <string.h>

/* 3.2: the shapes of classes that have one of these. A refinement has the last two. */
enum { SHAPE_NONE, SHAPE_PATH, SHAPE_ATTACHED, SHAPE_REFINED, SHAPE_DEFINED_AT, SHAPES };

bool has_shapes(const struct writer *w)
{
	return layout_has(w->layout, F_vm_shape_list);
}

void put_shapes(struct writer *w, const struct class_names *names)
{
	const uint64_t edges[SHAPES] = {0, names->path, names->attached, names->refined, names->defined_at};
	uint64_t shapes = allocate(w, SHAPES * size_of(w, S_shape)), vm;

	vm = IMAGE_SHAPES - w->layout->members[F_vm_shape_list].offset;
	set_member(w, vm, F_vm_shape_list, shapes);
	set_member(w, vm, F_vm_next_shape_id, SHAPES);
	for (uint64_t i = 0; i < SHAPES; i++) {
		uint64_t shape = shapes + i * size_of(w, S_shape);

		set_member(w, shape, F_shape_edge_name, edges[i]);
		set_member(w, shape, F_shape_type, i == SHAPE_NONE ? 0 : enumerator(w, E_SHAPE_IVAR));
		set_member(w, shape, F_shape_next_iv_index, i == SHAPE_DEFINED_AT ? 2 : i == SHAPE_NONE ? 0 : 1);
		/* The root has none. */
		set_member(w, shape, F_shape_parent_id,
			   i == SHAPE_DEFINED_AT ? SHAPE_REFINED
			   : i == SHAPE_NONE	 ? -1u
						 : 0);
	}
}

/* Gives a class instance variables, and the shape that says which. */
static void set_shaped_ivars(struct writer *w, uint64_t klass, uint64_t shape, uint64_t first, uint64_t second)
{
	uint64_t ivars = allocate(w, 16), flags;

	put_word(w, ivars, first);
	put_word(w, ivars + 8, second);
	set_member(w, klass + size_of(w, S_class), F_classext_iv_ptr, ivars);
	memcpy(&flags, bytes_at(w, klass + w->layout->members[F_basic_flags].offset, 8), 8);
	set_member(w, klass, F_basic_flags, flags | shape << (64 - w->layout->members[F_shape_parent_id].size * 8));
}

/* Until 3.1: an instance variable of a class, in its table, which has room for two. */
static void set_class_ivar(struct writer *w, uint64_t klass, uint64_t name, uint64_t value)
{
	uint64_t extension = allocate(w, size_of(w, S_classext)), table = allocate(w, size_of(w, S_st));
	uint64_t entries = allocate(w, 3 * size_of(w, S_st_entry)), second = entries + size_of(w, S_st_entry);

	set_member(w, klass, F_class_ptr, extension);
	set_member(w, extension, F_classext_iv_tbl, table);
	set_member(w, table, F_st_entries, entries);
	set_member(w, table, F_st_entries_bound, 2);
	/* One that was deleted comes first. */
	set_member(w, entries, F_st_entry_hash, UINT64_MAX);
	set_member(w, second, F_st_entry_key, name);
	set_member(w, second, F_st_entry_record, value);
}

static void set_second_class_ivar(struct writer *w, uint64_t klass, uint64_t name, uint64_t value)
{
	uint64_t extension, table, entries;

	memcpy(&extension, bytes_at(w, klass + w->layout->members[F_class_ptr].offset, 8), 8);
	memcpy(&table, bytes_at(w, extension + w->layout->members[F_classext_iv_tbl].offset, 8), 8);
	memcpy(&entries, bytes_at(w, table + w->layout->members[F_st_entries].offset, 8), 8);
	set_member(w, table, F_st_entries_bound, 3);
	set_member(w, entries + 2 * size_of(w, S_st_entry), F_st_entry_key, name);
	set_member(w, entries + 2 * size_of(w, S_st_entry), F_st_entry_record, value);
}

bool has_class_tables(const struct writer *w)
{
	return layout_has(w->layout, F_class_ptr);
}

uint64_t class_of(struct writer *w, const struct class_names *names, uint64_t flags, const char *path)
{
	uint64_t klass;

	if (has_shapes(w)) {
		/* Its rb_classext_struct is behind it. */
		klass = allocate(w, size_of(w, S_class) + size_of(w, S_classext));
		set_member(w, klass, F_basic_flags, flags);
		if (path)
			set_shaped_ivars(w, klass, SHAPE_PATH, new_string(w, path), 0);
		return klass;
	}
	klass = new_object(w, has_class_tables(w) ? S_class : S_class_slot, flags);
	if (!path) {
		if (has_class_tables(w))
			set_member(w, klass, F_class_ptr, allocate(w, size_of(w, S_classext)));
		return klass;
	}
	if (has_class_tables(w)) {
		set_class_ivar(w, klass, names->path, new_string(w, path));
		return klass;
	}
	set_member(w, klass, F_class_slot_classpath, new_string(w, path));
	set_member(w, klass, F_class_slot_permanent, 1);
	return klass;
}

void set_superclass(struct writer *w, uint64_t klass, uint64_t super)
{
	set_member(w, klass, layout_has(w->layout, F_class_super) ? F_class_super : F_class_slot_super, super);
}

uint64_t singleton_of(struct writer *w, const struct class_names *names, uint64_t attached, uint64_t super)
{
	uint64_t klass = class_of(w, names, enumerator(w, E_RUBY_T_CLASS) | enumerator(w, E_RUBY_FL_SINGLETON), NULL);

	set_superclass(w, klass, super);
	if (has_class_tables(w))
		set_class_ivar(w, klass, names->attached, attached);
	else if (has_shapes(w))
		set_shaped_ivars(w, klass, SHAPE_ATTACHED, attached, 0);
	else
		set_member(w, klass, F_class_slot_attached_object, attached);
	return klass;
}

uint64_t refinement_of(struct writer *w, const struct class_names *names, uint64_t refined, uint64_t defined_at)
{
	uint64_t module = class_of(w, names, enumerator(w, E_RUBY_T_MODULE), NULL), ivars, fields;

	set_superclass(w, module, refined);
	if (has_class_tables(w)) {
		set_class_ivar(w, module, names->refined, refined);
		set_second_class_ivar(w, module, names->defined_at, defined_at);
		return module;
	}
	if (has_shapes(w)) {
		set_shaped_ivars(w, module, SHAPE_DEFINED_AT, refined, defined_at);
		return module;
	}
	ivars = allocate(w, 16);
	put_word(w, ivars, refined);
	put_word(w, ivars + 8, defined_at);
	if (layout_has(w->layout, F_class_slot_fields)) {
		fields = new_object(w, S_fields, enumerator(w, E_ROBJECT_HEAP));
		set_member(w, fields, F_fields_ptr, ivars);
		set_member(w, module, F_class_slot_fields, fields);
	} else {
		set_member(w, module, F_class_slot_iv_ptr, ivars);
	}
	return module;
}
