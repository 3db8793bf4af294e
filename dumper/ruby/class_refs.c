#include "ruby/class_refs.h"

#include "ruby/class.h"
#include "ruby/st.h"

static bool has(const struct refs_walk *walk, enum layout_member_id id)
{
	return layout_has(walk->refs->layout, id);
}

/* A member; 0 if this Ruby has none. */
static uint64_t member(struct refs_walk *walk, uint64_t at, enum layout_member_id id)
{
	return has(walk, id) ? access_member(walk->access, at, id) : 0;
}

static void give_method(struct refs_walk *walk, uint64_t id, uint64_t entry)
{
	refs_give(walk, entry, REF_METHOD, id, REF_EXACT);
}

static void give_constant(struct refs_walk *walk, uint64_t id, uint64_t entry)
{
	refs_give(walk, access_member(walk->access, entry, F_const_entry_value), REF_CONSTANT, id, REF_EXACT);
	refs_give(walk, access_member(walk->access, entry, F_const_entry_file), REF_CONSTANT, id, REF_EXACT);
}

static void give_class_variable(struct refs_walk *walk, uint64_t id, uint64_t entry)
{
	refs_give(walk, access_member(walk->access, entry, F_cvar_entry_cref), REF_CLASS_VARIABLE, id, REF_EXACT);
}

/* Where the entries of a struct rb_class_cc_entries are. Since 4.0, they are in the struct itself. */
static uint64_t entries_of(struct access *access, uint64_t caches)
{
	return access->layout->members[F_cc_entries_entries].size == 0
		   ? access_address(access, caches, F_cc_entries_entries)
		   : access_member(access, caches, F_cc_entries_entries);
}

/*
 * Gives what is known of the calls of one method. vm_method.c, mark_cc_entry_i, v4_0_0 to v4_0_5 and head; imemo.c,
 * cc_table_mark_i, v3_4_0 to v3_4_9; gc.c, v3_0_0 to v3_3_11: if the method is no longer the one that is called, Ruby frees
 * the entry instead.
 */
static void give_call_caches(struct refs_walk *walk, uint64_t id, uint64_t caches)
{
	struct access *access = walk->access;
	const uint64_t cme = access_member(access, caches, F_cc_entries_cme);
	const uint64_t entries = entries_of(access, caches);
	const uint64_t count = access_member(access, caches, F_cc_entries_len);

	if (access->failed || value_flags(access, cme) & access_enum(access, E_METHOD_ENTRY_INVALIDATED))
		return;
	refs_give(walk, cme, REF_METHOD, id, REF_EXACT);
	for (uint64_t i = 0; i < count && !access->failed; i++) {
		const uint64_t entry = entries + i * access_sizeof(access, S_cc_entry);

		if (!refs_step(walk)) {
			access_fail(access, caches);
			return;
		}
		refs_give_member(walk, entry, F_cc_entry_ci, "ci");
		refs_give_member(walk, entry, F_cc_entry_cc, "cc");
	}
}

bool class_refs_caches_are_known(const struct layout *layout)
{
	return layout_has(layout, F_id_table_capa) && layout_has(layout, F_id_table_items) &&
	       layout->sizes[S_id_item].present && layout_has(layout, F_cc_entries_cme) &&
	       layout_has(layout, F_cc_entries_entries) && layout_has(layout, F_cc_entries_len) &&
	       layout_has(layout, F_cc_entry_cc) && layout->sizes[S_cc_entry].present &&
	       layout->enumerators[E_METHOD_ENTRY_INVALIDATED].present;
}

bool class_refs_caches(struct refs_walk *walk, uint64_t table)
{
	refs_each_id(walk, table, give_call_caches);
	return !walk->access->failed;
}

/* Whether the layout has the members of the tables that this Ruby has. */
static bool tables_are_known(const struct layout *layout)
{
	const bool objects = layout_has(layout, F_classext_box);

	if (!layout_has(layout, F_id_table_capa) || !layout_has(layout, F_id_table_items) ||
	    !layout->sizes[S_id_item].present || !layout_has(layout, F_classext_const_tbl) ||
	    !layout_has(layout, F_const_entry_value) || !layout_has(layout, F_const_entry_file) ||
	    !layout_has(layout, F_classext_callable_m_tbl) ||
	    !(layout_has(layout, F_class_m_tbl) || layout_has(layout, F_classext_m_tbl)))
		return false;
	if (!objects && layout_has(layout, F_classext_cc_tbl) && !class_refs_caches_are_known(layout))
		return false;
	if (objects)
		return layout_has(layout, F_classext_fields) && layout_has(layout, F_classext_classpath) &&
		       layout_has(layout, F_class_boxable_table) && layout->enumerators[E_RCLASS_BOXABLE].present;
	return layout_has(layout, F_class_super);
}

static uint64_t methods(struct refs_walk *walk, uint64_t ext)
{
	return has(walk, F_class_m_tbl) ? access_member(walk->access, walk->slot->address, F_class_m_tbl)
					: access_member(walk->access, ext, F_classext_m_tbl);
}

static void give_superclass(struct refs_walk *walk, uint64_t ext)
{
	const uint64_t super = has(walk, F_class_super) ? slot_member(walk->refs->layout, walk->slot, F_class_super)
							: member(walk, ext, F_classext_super);

	refs_give(walk, super, REF_SUPER, 0, REF_EXACT);
}

/* What is known of calls. Since 4.0, the table is an object. */
static void give_caches(struct refs_walk *walk, uint64_t ext)
{
	if (has(walk, F_classext_box)) {
		refs_give_member(walk, ext, F_classext_cc_tbl, "cc_tbl");
		return;
	}
	refs_each_id(walk, member(walk, ext, F_classext_cc_tbl), give_call_caches);
}

/*
 * gc.c, mark_cvc_tbl, v3_1_5 to v3_1_7 and v3_2_3 to v4_0_3: earlier releases have no cref there, and mark nothing.
 * Since v4_0_4, the table is an object.
 */
static void give_class_variables(struct refs_walk *walk, uint64_t ext)
{
	if (walk->refs->layout->enumerators[E_imemo_cvar_entry].present)
		refs_give_member(walk, ext, F_classext_cvc_tbl, "cvc_tbl");
	else if (has(walk, F_cvar_entry_cref))
		refs_each_id(walk, member(walk, ext, F_classext_cvc_tbl), give_class_variable);
}

static void give_ivar_table(struct refs_walk *walk, uint64_t table)
{
	if (table != 0 && !refs_give_table(walk, table, REF_IVAR_NAMED, false))
		access_fail(walk->access, table);
}

/* 3.2 to 3.4: the shape tells how many instance variables are in the array, or that they are in an st_table. */
static bool give_ivars_by_shape(struct refs_walk *walk, uint64_t ext)
{
	const uint64_t address = access_member(walk->access, ext, F_classext_iv_ptr);
	struct ivars *ivars = &walk->refs->ivars;
	struct object_shape shape;
	bool known;

	if (has(walk, F_classext_shape_id))
		known = ivars_shape_of_id(ivars, access_member(walk->access, ext, F_classext_shape_id), &shape);
	else
		known = ivars_shape(ivars, walk->flags, &shape);
	if (!known || shape.address == 0)
		return address == 0;
	if (!shape.too_complex)
		return refs_give_words(walk, address, shape.fields, REF_IVAR, REF_EXACT);
	give_ivar_table(walk, address);
	return true;
}

static bool give_ivars(struct refs_walk *walk, uint64_t ext)
{
	if (has(walk, F_classext_fields)) {
		refs_give_member(walk, ext, F_classext_fields, "fields_obj");
		return true;
	}
	if (has(walk, F_classext_iv_tbl)) {
		give_ivar_table(walk, member(walk, ext, F_classext_iv_tbl));
		return true;
	}
	return has(walk, F_classext_iv_ptr) && has(walk, F_shape_next_iv_index) && give_ivars_by_shape(walk, ext);
}

/* In head, the list of subclasses is an object. */
static void give_subclasses(struct refs_walk *walk, uint64_t ext)
{
	if (walk->refs->layout->enumerators[E_imemo_subclasses].present)
		refs_give_member(walk, ext, F_classext_subclasses, "subclasses");
}

/* What one rb_classext_struct of a class or module has. */
static bool give_class_ext(struct refs_walk *walk, uint64_t ext)
{
	refs_each_id(walk, methods(walk, ext), give_method);
	give_class_variables(walk, ext);
	give_caches(walk, ext);
	if (!member(walk, ext, F_classext_shared_const_tbl))
		refs_each_id(walk, member(walk, ext, F_classext_const_tbl), give_constant);
	refs_give_member(walk, ext, F_classext_classpath, "classpath");
	/* gc.c, gc_mark_classext_module, v4_0_0 to v4_0_5 and head */
	if (has(walk, F_classext_box)) {
		give_superclass(walk, ext);
		refs_each_id(walk, member(walk, ext, F_classext_callable_m_tbl), give_method);
		give_subclasses(walk, ext);
	}
	return give_ivars(walk, ext);
}

/* internal/class.h, RICLASS_OWNS_M_TBL_P, v3_0_0 to v4_0_5 and head. Up to 2.7, each origin owns its table. */
static bool owns_methods(struct refs_walk *walk, uint64_t ext)
{
	if (has(walk, F_classext_is_origin))
		return member(walk, ext, F_classext_is_origin) && !member(walk, ext, F_classext_shared_m_tbl);
	return slot_has_flag(walk->refs->layout, walk->flags, E_RICLASS_IS_ORIGIN) &&
	       !slot_has_flag(walk->refs->layout, walk->flags, E_RICLASS_ORIGIN_SHARED_MTBL);
}

/*
 * What one rb_classext_struct of an included module has. gc.c, gc_mark_children: `includer` is marked since
 * v3_2_0, but not up to v3_1_7. Ruby keeps the number of superclasses since v3_2_0, too.
 */
static bool give_iclass_ext(struct refs_walk *walk, uint64_t ext)
{
	if (owns_methods(walk, ext))
		refs_each_id(walk, methods(walk, ext), give_method);
	if (has(walk, F_classext_superclass_depth))
		refs_give_member(walk, ext, F_classext_includer, "includer");
	refs_each_id(walk, member(walk, ext, F_classext_callable_m_tbl), give_method);
	give_caches(walk, ext);
	if (has(walk, F_classext_box)) {
		give_superclass(walk, ext);
		give_subclasses(walk, ext);
	}
	return true;
}

/* The rb_classext_struct of each box that has its own. */
struct boxes {
	struct refs_walk *walk;
	bool (*give)(struct refs_walk *walk, uint64_t ext);
	bool all;
};

static bool give_box(void *context, struct access *access, uint64_t key, uint64_t record)
{
	struct boxes *boxes = context;

	(void)access;
	(void)key;
	boxes->all = boxes->give(boxes->walk, record);
	return boxes->all;
}

/* class.c, rb_class_classext_foreach, v4_0_0 to v4_0_5 and head; gc.c, rb_gc_mark_children: RCLASS_PRIME_BOX. */
static bool give_boxes(struct refs_walk *walk, uint64_t ext, bool (*give)(struct refs_walk *walk, uint64_t ext))
{
	struct boxes boxes = {walk, give, true};
	const uint64_t box = member(walk, ext, F_classext_box);
	uint64_t table = 0;

	if (box != 0 && member(walk, box, F_box_is_user))
		refs_give_member(walk, box, F_box_object, "box");
	if (slot_has_flag(walk->refs->layout, walk->flags, E_RCLASS_BOXABLE))
		table = slot_member(walk->refs->layout, walk->slot, F_class_boxable_table);
	return table == 0 || (st_each_step(walk->access, table, &walk->steps, give_box, &boxes) && boxes.all);
}

static bool give_st_constant(void *context, struct access *access, uint64_t key, uint64_t record)
{
	give_constant(context, key, record);
	return !access->failed;
}

/* gc.c, mark_const_tbl, v1_9_3_0 to v2_2_10. */
static bool give_st_constants(struct refs_walk *walk, uint64_t ext)
{
	const uint64_t table = member(walk, ext, F_classext_const_tbl);

	if (st_replaced_by_id_tables(walk->refs->layout) || !has(walk, F_const_entry_value) ||
	    !has(walk, F_const_entry_file))
		return true;
	return table == 0 || st_each_step(walk->access, table, &walk->steps, give_st_constant, walk);
}

/*
 * What is known up to 2.4: all but the methods, and in 2.3 and 2.4 the constants. Returns false: these are not all
 * references.
 */
static bool give_known(struct refs_walk *walk)
{
	uint64_t ext;

	if (!has(walk, F_class_ptr) || !has(walk, F_classext_iv_tbl))
		return false;
	ext = class_ext(walk->access, walk->slot->address);
	if (ext == 0 || walk->access->failed)
		return false;
	if (!has(walk, F_class_super))
		give_superclass(walk, ext);
	/* gc.c, gc_mark_children, v2_3_0 to v2_4_10: in an included module, nothing else is marked that is known. */
	if (st_replaced_by_id_tables(walk->refs->layout) && slot_is(walk->refs->layout, walk->flags, E_RUBY_T_ICLASS))
		return false;
	if (give_st_constants(walk, ext))
		give_ivars(walk, ext);
	return false;
}

static bool give_all(struct refs_walk *walk, bool (*give)(struct refs_walk *walk, uint64_t ext))
{
	const bool known = tables_are_known(walk->refs->layout);
	uint64_t ext;

	if (!has(walk, F_classext_box) && has(walk, F_class_super))
		give_superclass(walk, 0);
	if (!known)
		return give_known(walk);
	ext = class_ext(walk->access, walk->slot->address);
	/* Up to 3.1, a class that is being made has none yet. */
	if (ext == 0)
		return !walk->access->failed;
	return give(walk, ext) && (!has(walk, F_classext_box) || give_boxes(walk, ext, give)) && !walk->access->failed;
}

bool class_refs(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;
	const uint64_t type = walk->flags & access_enum(walk->access, E_RUBY_T_MASK);

	/* In a class that is not a singleton class, there is something else in the place of the attached object. */
	if (type == access_enum(walk->access, E_RUBY_T_CLASS) &&
	    slot_has_flag(layout, walk->flags, E_RUBY_FL_SINGLETON))
		refs_give_member(walk, walk->slot->address, F_class_slot_attached_object, "attached_object");
	return give_all(walk, give_class_ext);
}

bool iclass_refs(struct refs_walk *walk)
{
	return give_all(walk, give_iclass_ext);
}

const char *class_refs_lack(const struct layout *layout)
{
	if (tables_are_known(layout))
		return NULL;
	return st_replaced_by_id_tables(layout)
		   ? "The layout lacks a member of the tables of constants or methods, so rbdump does not know the "
		     "references of constants "
		     "and methods."
		   : "The layout lacks the struct of the table of methods, so rbdump does not know the references of "
		     "methods.";
}
