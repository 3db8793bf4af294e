#include "ruby/ivars.h"

#include "ruby/class.h"
#include "ruby/object_slot.h"
#include "ruby/st.h"

/* The most objects without room for instance variables that are looked at. */
#define GENERIC_MAX (1u << 22)

/* The most instance variables of one object. */
#define IVARS_OF_ONE_MAX 65536

/* shape.h, SHAPE_FLAG_SHIFT, v3_2_0 to v4_0_5 and head. */
#define SHAPE_SHIFT 32

/* The table of generic instance variables, while it is read. */
struct reading {
	struct address_map *map;
	bool no_memory;
};

static bool add_generic(void *context, struct access *access, uint64_t key, uint64_t record)
{
	struct reading *reading = context;

	(void)access;
	reading->no_memory = !address_map_add(reading->map, key, record);
	return !reading->no_memory;
}

/* The address of the array of shapes. */
static uint64_t find_shapes(const struct ruby *ruby)
{
	const struct layout *layout = ruby->layout;
	struct access access = ruby_access(ruby);
	uint64_t ret = 0;

	if (layout_has(layout, F_vm_shape_list))
		ret = access_member(&access, ruby->vm, F_vm_shape_list);
	else if (ruby->shape_tree != 0 && layout_has(layout, F_shape_tree_list))
		ret = access_member(&access,
				    layout_has(layout, F_shape_fields) ? ruby->shape_tree
								       : access_word(&access, ruby->shape_tree),
				    F_shape_tree_list);
	return access.failed ? 0 : ret;
}

/* variable.c, v1_9_3_0 to v2_1_10. Both gen_ivtbl and RSymbol are since 2.2. */
bool ivars_generic_are_tables(const struct layout *layout)
{
	return !layout_has(layout, F_generic_ivars_numiv) && !layout->sizes[S_symbol].present &&
	       !layout->enumerators[E_imemo_fields].present;
}

bool ivars_read(const struct ruby *ruby, struct ivars *ret)
{
	struct access access = ruby_access(ruby);
	struct reading reading = {.map = &ret->generic};

	*ret = (struct ivars){.layout = ruby->layout, .lasting = ruby->memory, .shapes = find_shapes(ruby)};
	if (ruby->generic_ivars != 0 &&
	    (layout_has(ruby->layout, F_generic_ivars_numiv) || ruby->layout->enumerators[E_imemo_fields].present ||
	     ivars_generic_are_tables(ruby->layout))) {
		const uint64_t table = access_word(&access, ruby->generic_ivars);

		if (table != 0)
			ret->generic_known = st_each_address(&access, table, GENERIC_MAX, add_generic, &reading);
		else
			ret->generic_known = !access.failed;
		address_map_sort(&ret->generic);
	}
	return !reading.no_memory;
}

void ivars_clear(struct ivars *ivars)
{
	address_map_clear(&ivars->generic);
}

/* How many instance variables an object of a shape has; since 4.0 by another name. */
static enum layout_member_id count_of(const struct layout *layout)
{
	return layout_has(layout, F_shape_fields) ? F_shape_fields : F_shape_next_iv_index;
}

bool ivars_shape_of_id(struct ivars *ivars, uint64_t id, struct object_shape *ret)
{
	const struct layout *layout = ivars->layout;
	struct access access = access_begin(ivars->lasting, layout);
	struct object_shape *kept;
	bool complex = false;
	uint64_t address;

	*ret = (struct object_shape){0};
	if (!layout->sizes[S_shape].present)
		return true;
	if (ivars->shapes == 0)
		return false;
	/* shape.h, SHAPE_ID_OFFSET_MASK, v4_0_0 to v4_0_5 and head: other bits of the number are flags. */
	if (layout->enumerators[E_SHAPE_ID_OFFSET_MASK].present) {
		complex = slot_has_flag(layout, id, E_SHAPE_ID_FL_TOO_COMPLEX) ||
			  slot_has_flag(layout, id, E_SHAPE_ID_FL_COMPLEX);
		id &= (uint64_t)layout->enumerators[E_SHAPE_ID_OFFSET_MASK].value;
	}
	address = ivars->shapes + id * (uint64_t)layout->sizes[S_shape].value;
	kept = &ivars->kept[address / 8 % SHAPES_KEPT];
	if (kept->address != address) {
		struct object_shape shape = {.address = address};

		if (layout->enumerators[E_SHAPE_OBJ_TOO_COMPLEX].present)
			shape.too_complex = access_member(&access, address, F_shape_type) ==
					    access_enum(&access, E_SHAPE_OBJ_TOO_COMPLEX);
		if (layout_has(layout, F_shape_capacity))
			shape.capacity = access_member(&access, address, F_shape_capacity);
		shape.fields = access_member(&access, address, count_of(layout));
		if (access.failed)
			return false;
		*kept = shape;
	}
	*ret = *kept;
	ret->too_complex |= complex;
	return true;
}

bool ivars_shape(struct ivars *ivars, uint64_t flags, struct object_shape *ret)
{
	return ivars_shape_of_id(ivars, flags >> SHAPE_SHIFT, ret);
}

/* Each shape, up to the root, has the name of one instance variable more than its parent. */
static uint64_t id_by_shape(const struct ivars *ivars, uint64_t shape, uint64_t index)
{
	struct access access = access_begin(ivars->lasting, ivars->layout);

	for (int seen = 0; seen < IVARS_OF_ONE_MAX && !access.failed; seen++) {
		const uint64_t count = access_member(&access, shape, count_of(ivars->layout));

		if (access_member(&access, shape, F_shape_type) == access_enum(&access, E_SHAPE_IVAR) &&
		    count == index + 1)
			return access.failed ? 0 : access_member(&access, shape, F_shape_edge_name);
		if (count <= index)
			break;
		shape =
		    ivars->shapes + access_member(&access, shape, F_shape_parent_id) * access_sizeof(&access, S_shape);
	}
	return 0;
}

struct wish {
	uint64_t index, id;
};

/* variable.c, iv_index_tbl: up to 2.7 the index by the ID; in 3.0 and 3.1, a struct by the ID. */
static bool is_other(void *context, struct access *access, uint64_t key, uint64_t record)
{
	struct wish *wish = context;
	const uint64_t index =
	    layout_has(access->layout, F_iv_entry_index) ? access_member(access, record, F_iv_entry_index) : record;

	if (access->failed || index != wish->index)
		return !access->failed;
	wish->id = key;
	return false;
}

uint64_t ivars_id(struct ivars *ivars, uint64_t klass, uint64_t flags, uint64_t index)
{
	struct access access = access_begin(ivars->lasting, ivars->layout);
	struct wish wish = {.index = index};
	struct object_shape shape;
	uint64_t real;

	if (ivars_shape(ivars, flags, &shape) && shape.address != 0)
		return ivars->layout->enumerators[E_SHAPE_IVAR].present ? id_by_shape(ivars, shape.address, index) : 0;
	real = class_real(&access, klass);
	if (real == 0 || !layout_has(ivars->layout, F_classext_iv_index_tbl))
		return 0;
	st_each(&access, access_member(&access, class_ext(&access, real), F_classext_iv_index_tbl), IVARS_OF_ONE_MAX,
		is_other, &wish);
	return wish.id;
}

uint64_t ivars_generic(const struct ivars *ivars, struct access *access, uint64_t object)
{
	const uint64_t *entry = address_map_find(&ivars->generic, object);

	return entry ? st_record_at(access, *entry, object) : 0;
}

uint64_t ivars_generic_count(struct access *access, uint64_t record)
{
	const uint64_t count = access_member(access, record, F_generic_ivars_numiv);

	if (count > IVARS_OF_ONE_MAX)
		access_fail(access, record);
	return access->failed ? 0 : count;
}
