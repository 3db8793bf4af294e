#include "ruby/class_size.h"

#include "ruby/class.h"
#include "ruby/st.h"

/* A number of instance variables has fewer bits (attr_index_t, a uint32_t at most). */
#define COUNT_BITS 32

static bool has_bit(const struct access *access, uint64_t flags, enum layout_enumerator_id id)
{
	const struct layout_number *flag = &access->layout->enumerators[id];

	return flag->present && (flags & (uint64_t)flag->value) != 0;
}

/* A member of a class's rb_classext_struct; 0 if this Ruby has none. */
static uint64_t of_ext(struct access *access, uint64_t klass, enum layout_member_id id)
{
	return layout_has(access->layout, id) ? access_member(access, class_ext(access, klass), id) : 0;
}

static uint64_t methods(struct access *access, uint64_t klass)
{
	return layout_has(access->layout, F_class_m_tbl) ? access_member(access, klass, F_class_m_tbl)
							 : of_ext(access, klass, F_classext_m_tbl);
}

/* id_table.c, rb_id_table_memsize, v2_4_0 to v4_0_5 and head. Adds 0 if there is no table. */
static void add_id_table(struct access *access, uint64_t table, uint64_t *ret)
{
	if (table != 0)
		*ret += access_sizeof(access, S_id_table) +
			access_member(access, table, F_id_table_capa) * access_sizeof(access, S_id_item);
}

static void add_st_table(struct access *access, uint64_t table, uint64_t *ret)
{
	uint64_t size;

	if (table == 0)
		return;
	if (st_size(access, table, &size))
		*ret += size;
	else
		access_fail(access, table);
}

/* gc.c, cc_table_memsize, v3_0_0 to v3_4_9. */
static void add_call_caches(struct access *access, uint64_t table, uint64_t *steps, uint64_t *ret)
{
	uint64_t items, capa;

	if (table == 0)
		return;
	add_id_table(access, table, ret);
	items = access_member(access, table, F_id_table_items);
	capa = access_member(access, table, F_id_table_capa);
	if (capa > *steps)
		access_fail(access, table);
	else
		*steps -= capa;
	for (uint64_t i = 0; i < capa && !access->failed; i++) {
		const uint64_t item = items + i * access_sizeof(access, S_id_item);

		if (access_member(access, item, F_id_item_key) != 0)
			*ret += access_sizeof(access, S_cc_entries) +
				access_member(access, access_member(access, item, F_id_item_val), F_cc_entries_capa) *
				    access_sizeof(access, S_cc_entry);
	}
}

/* Whether the layout has the members for the tables that this Ruby has. */
static bool tables_are_known(const struct layout *layout)
{
	/* In 4.0, a class can have several rb_classext_struct. */
	if (layout_has(layout, F_classext_superclass_depth) &&
	    !layout->enumerators[E_RCLASS_SUPERCLASSES_INCLUDE_SELF].present)
		return false;
	return layout_has(layout, F_id_table_capa) && layout->sizes[S_id_item].present &&
	       (layout_has(layout, F_class_m_tbl) || layout_has(layout, F_classext_m_tbl)) &&
	       layout_has(layout, F_classext_const_tbl) &&
	       (!layout_has(layout, F_classext_cc_tbl) ||
		(layout_has(layout, F_cc_entries_capa) && layout->sizes[S_cc_entry].present));
}

/* How many instance variables of its own the class has: the bits of that number are counted. */
static bool add_ivars(struct access *access, uint64_t shape, uint64_t *ret)
{
	uint64_t count, bits = 0;

	if (shape == 0 || (access->layout->enumerators[E_SHAPE_OBJ_TOO_COMPLEX].present &&
			   access_member(access, shape, F_shape_type) == access_enum(access, E_SHAPE_OBJ_TOO_COMPLEX)))
		return false;
	count = access_member(access, shape, F_shape_next_iv_index);
	while (bits < COUNT_BITS && count >> bits != 0)
		bits++;
	*ret += UINT64_C(8) << bits;
	return true;
}

/*
 * gc.c, rb_obj_memsize_of, v4_0_0 to v4_0_5 and head: not all tables are counted, and the array of superclasses is counted
 * twice. The table of class variables is counted until v4_0_3: since then it is an object. A class of several boxes has
 * several rb_classext_struct, which are not looked at.
 */
static bool boxed_class_size(struct access *access, uint64_t klass, uint64_t flags, uint64_t *ret)
{
	const struct layout *layout = access->layout;

	if (!layout_has(layout, F_classext_with_self) || !layout_has(layout, F_class_boxable_table) ||
	    !layout->enumerators[E_RCLASS_BOXABLE].present)
		return false;
	if (has_bit(access, flags, E_RCLASS_BOXABLE) && access_member(access, klass, F_class_boxable_table) != 0)
		return false;
	add_id_table(access, of_ext(access, klass, F_classext_m_tbl), ret);
	add_id_table(access, of_ext(access, klass, F_classext_const_tbl), ret);
	if (!layout->enumerators[E_imemo_cvar_entry].present)
		add_id_table(access, of_ext(access, klass, F_classext_cvc_tbl), ret);
	if (of_ext(access, klass, F_classext_with_self) != 0)
		*ret += 2 * (of_ext(access, klass, F_classext_superclass_depth) + 1) * 8;
	return !access->failed;
}

bool class_size(struct access *access, uint64_t klass, uint64_t flags, uint64_t shape, uint64_t *steps, uint64_t *ret)
{
	const struct layout *layout = access->layout;

	if (layout_has(layout, F_classext_box))
		return boxed_class_size(access, klass, flags, ret);
	if (!tables_are_known(layout))
		return false;
	add_id_table(access, methods(access, klass), ret);
	add_id_table(access, of_ext(access, klass, F_classext_const_tbl), ret);
	add_id_table(access, of_ext(access, klass, F_classext_cvc_tbl), ret);
	add_call_caches(access, of_ext(access, klass, F_classext_cc_tbl), steps, ret);
	add_st_table(access, of_ext(access, klass, F_classext_iv_index_tbl), ret);
	/* Up to 3.1, Ruby counts this table twice, once by RCLASS_IV_TBL, and once by itself. */
	add_st_table(access, of_ext(access, klass, F_classext_iv_tbl), ret);
	add_st_table(access, of_ext(access, klass, F_classext_iv_tbl), ret);
	if (has_bit(access, flags, E_RCLASS_SUPERCLASSES_INCLUDE_SELF))
		*ret += (of_ext(access, klass, F_classext_superclass_depth) + 1) * 8;
	if (layout_has(layout, F_class_ptr))
		*ret += access_sizeof(access, S_classext);
	if (layout_has(layout, F_shape_parent_id) && !add_ivars(access, shape, ret))
		return false;
	return !access->failed;
}

bool class_included_size(struct access *access, uint64_t iclass, uint64_t flags, uint64_t *steps, uint64_t *ret)
{
	if (layout_has(access->layout, F_classext_is_origin)) {
		if (of_ext(access, iclass, F_classext_is_origin) != 0 &&
		    of_ext(access, iclass, F_classext_shared_m_tbl) == 0)
			add_id_table(access, of_ext(access, iclass, F_classext_m_tbl), ret);
		return !access->failed;
	}
	/* gc.c, rb_obj_memsize_of, v2_3_0 to v2_4_10: nothing belongs to it, if it is not an origin. */
	if (!tables_are_known(access->layout))
		return access->layout->enumerators[E_RICLASS_IS_ORIGIN].present &&
		       !layout_has(access->layout, F_classext_cc_tbl) && !has_bit(access, flags, E_RICLASS_IS_ORIGIN);
	if (has_bit(access, flags, E_RICLASS_IS_ORIGIN) && !has_bit(access, flags, E_RICLASS_ORIGIN_SHARED_MTBL))
		add_id_table(access, methods(access, iclass), ret);
	add_call_caches(access, of_ext(access, iclass, F_classext_cc_tbl), steps, ret);
	return !access->failed;
}
