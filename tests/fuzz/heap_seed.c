#include "heap_seed.h"

#include <stdbool.h>
#include <string.h>

#include "heap_structs.h"

/* The sizes of the regions, and of the slots of both pages, if this Ruby has slots of several sizes. */
enum { CONTEXT_SIZE = 60000, SLOTS_SIZE = 40960, OUTSIDE_SIZE = 90000, SMALL_SLOT = 80, LARGE_SLOT = 640 };
enum { SMALL_SLOTS = 80, LARGE_SLOTS = 36 };

/* The table of global variables has room for so many, and has so many. Also how many words a VM stack has. */
enum { GLOBALS = 32, GLOBALS_USED = 20, STACK_WORDS = 96 };

#define NONE LAYOUT_ENUMERATORS

/* A page of the heap: the next slot that is free, and the end of the slots. */
struct page {
	uint64_t next, end, slot_size;
};

/* The objects: what struct is in the slot, the type, the kind of imemo, two flags, and the number of the shape. */
static const struct kind {
	enum layout_struct_id id;
	enum layout_enumerator_id type, imemo, flag, other_flag;
	unsigned int shape;
} kinds[] = {
    {S_object, E_RUBY_T_OBJECT, NONE, E_ROBJECT_EMBED, NONE, 2},
    {S_object, E_RUBY_T_OBJECT, NONE, E_ROBJECT_HEAP, NONE, 2},
    {S_object, E_RUBY_T_OBJECT, NONE, E_ROBJECT_HEAP, NONE, 3},
    {S_class, E_RUBY_T_CLASS, NONE, NONE, NONE, 1},
    {S_class, E_RUBY_T_CLASS, NONE, E_RUBY_FL_SINGLETON, NONE, 0},
    {S_class, E_RUBY_T_CLASS, NONE, E_RCLASS_BOXABLE, E_RCLASS_SUPERCLASSES_INCLUDE_SELF, 3},
    {S_class, E_RUBY_T_MODULE, NONE, NONE, NONE, 2},
    {S_class, E_RUBY_T_ICLASS, NONE, E_RICLASS_IS_ORIGIN, NONE, 0},
    {S_class, E_RUBY_T_ICLASS, NONE, NONE, NONE, 0},
    {S_string, E_RUBY_T_STRING, NONE, NONE, NONE, 0},
    {S_string, E_RUBY_T_STRING, NONE, E_RSTRING_NOEMBED, NONE, 0},
    {S_string, E_RUBY_T_STRING, NONE, E_RSTRING_NOEMBED, E_RUBY_ELTS_SHARED, 0},
    {S_string, E_RUBY_T_STRING, NONE, E_RSTRING_NOEMBED, E_RUBY_FL_EXIVAR, 2},
    {S_array, E_RUBY_T_ARRAY, NONE, NONE, NONE, 0},
    {S_array, E_RUBY_T_ARRAY, NONE, E_RARRAY_EMBED_FLAG, NONE, 0},
    {S_array, E_RUBY_T_ARRAY, NONE, E_RUBY_ELTS_SHARED, NONE, 0},
    {S_hash, E_RUBY_T_HASH, NONE, E_RHASH_ST_TABLE_FLAG, NONE, 0},
    {S_hash, E_RUBY_T_HASH, NONE, NONE, NONE, 0},
    {S_struct, E_RUBY_T_STRUCT, NONE, NONE, NONE, 2},
    {S_struct, E_RUBY_T_STRUCT, NONE, E_RSTRUCT_EMBED_LEN_MASK, NONE, 0},
    {S_bignum, E_RUBY_T_BIGNUM, NONE, NONE, NONE, 0},
    {S_bignum, E_RUBY_T_BIGNUM, NONE, E_BIGNUM_EMBED_FLAG, NONE, 0},
    {S_basic, E_RUBY_T_FLOAT, NONE, E_RUBY_FL_FREEZE, E_RUBY_FL_PROMOTED, 0},
    {S_regexp, E_RUBY_T_REGEXP, NONE, NONE, NONE, 0},
    {S_match, E_RUBY_T_MATCH, NONE, NONE, NONE, 0},
    {S_file, E_RUBY_T_FILE, NONE, NONE, NONE, 0},
    {S_symbol, E_RUBY_T_SYMBOL, NONE, NONE, NONE, 0},
    {S_rational, E_RUBY_T_RATIONAL, NONE, NONE, NONE, 0},
    {S_complex, E_RUBY_T_COMPLEX, NONE, NONE, NONE, 0},
    {S_plain_data, E_RUBY_T_DATA, NONE, NONE, NONE, 0},
    /* The first two become Fibers. */
    {S_typed_data, E_RUBY_T_DATA, NONE, E_RUBY_TYPED_FL_IS_TYPED_DATA, NONE, 0},
    {S_typed_data, E_RUBY_T_DATA, NONE, E_RUBY_TYPED_FL_IS_TYPED_DATA, NONE, 0},
    {S_typed_data, E_RUBY_T_DATA, NONE, E_RUBY_TYPED_FL_IS_TYPED_DATA, NONE, 0},
    {S_typed_data, E_RUBY_T_DATA, NONE, E_RUBY_TYPED_FL_IS_TYPED_DATA, E_RUBY_FL_EXIVAR, 2},
    {S_basic, E_RUBY_T_ZOMBIE, NONE, NONE, NONE, 0},
    {S_moved, E_RUBY_T_MOVED, NONE, NONE, NONE, 0},
    {S_env, E_RUBY_T_IMEMO, E_imemo_env, NONE, NONE, 0},
    {S_cref, E_RUBY_T_IMEMO, E_imemo_cref, NONE, NONE, 0},
    {S_svar, E_RUBY_T_IMEMO, E_imemo_svar, NONE, NONE, 0},
    {S_throw_data, E_RUBY_T_IMEMO, E_imemo_throw_data, NONE, NONE, 0},
    {S_ifunc, E_RUBY_T_IMEMO, E_imemo_ifunc, NONE, NONE, 0},
    {S_memo, E_RUBY_T_IMEMO, E_imemo_memo, E_MEMO_U3_IS_VALUE, NONE, 0},
    {S_ment, E_RUBY_T_IMEMO, E_imemo_ment, NONE, NONE, 0},
    {S_iseq, E_RUBY_T_IMEMO, E_imemo_iseq, E_ISEQ_MARKABLE_ISEQ, NONE, 0},
    {S_iseq, E_RUBY_T_IMEMO, E_imemo_iseq, E_ISEQ_NOT_LOADED_YET, NONE, 0},
    {S_tmpbuf, E_RUBY_T_IMEMO, E_imemo_tmpbuf, NONE, NONE, 0},
    {S_tmpbuf, E_RUBY_T_IMEMO, E_imemo_alloc, NONE, NONE, 0},
    {S_ast, E_RUBY_T_IMEMO, E_imemo_ast, NONE, NONE, 0},
    {S_call_info, E_RUBY_T_IMEMO, E_imemo_callinfo, NONE, NONE, 0},
    {S_call_cache, E_RUBY_T_IMEMO, E_imemo_callcache, E_VM_CALLCACHE_SUPER, NONE, 0},
    {S_constcache, E_RUBY_T_IMEMO, E_imemo_constcache, NONE, NONE, 0},
    {S_cvar_entry, E_RUBY_T_IMEMO, E_imemo_cvar_entry, NONE, NONE, 0},
    {S_fields, E_RUBY_T_IMEMO, E_imemo_fields, NONE, NONE, 2},
    {S_fields, E_RUBY_T_IMEMO, E_imemo_fields, E_ROBJECT_HEAP, NONE, 2},
    {S_fields, E_RUBY_T_IMEMO, E_imemo_fields, E_ROBJECT_HEAP, NONE, 3},
    {S_cdhash, E_RUBY_T_IMEMO, E_imemo_cdhash, NONE, NONE, 0},
    /* Only the stacks of both Fibers refer to these. */
    {S_string, E_RUBY_T_STRING, NONE, NONE, NONE, 0},
    {S_string, E_RUBY_T_STRING, NONE, NONE, NONE, 0},
};

static uint64_t slot_bytes(const struct maker *m, enum layout_struct_id id)
{
	if (id == S_class && has_struct(m, S_class_slot))
		return size_of(&m->w, S_class_slot);
	return size_of(&m->w, id) +
	       (id == S_class && !layout_has(m->w.layout, F_class_ptr) ? size_of(&m->w, S_classext) : 0);
}

/* Takes a slot of the page with the smallest slots that are large enough. Returns 0 if there is none. */
static uint64_t take_slot(struct maker *m, struct page pages[2], uint64_t bytes)
{
	for (size_t i = 0; i < 2; i++)
		if (bytes <= pages[i].slot_size && pages[i].next < pages[i].end) {
			pages[i].next += pages[i].slot_size;
			return note_address(&m->w, pages[i].next - pages[i].slot_size);
		}
	return 0;
}

static bool is_there(const struct maker *m, enum layout_enumerator_id id)
{
	return id == NONE || m->w.layout->enumerators[id].present;
}

static uint64_t value_of(const struct maker *m, enum layout_enumerator_id id)
{
	return id != NONE && is_there(m, id) ? enumerator(&m->w, id) : 0;
}

/* A few bits in the flags that tell how long something is. */
static uint64_t length_bits(const struct maker *m, enum layout_enumerator_id shift, uint64_t length)
{
	return is_there(m, shift) ? length << enumerator(&m->w, shift) : 0;
}

static uint64_t flags_of(const struct maker *m, const struct kind *kind)
{
	uint64_t ret = value_of(m, kind->type) | value_of(m, kind->flag) | value_of(m, kind->other_flag);

	if (kind->imemo != NONE)
		ret |= value_of(m, kind->imemo) << enumerator(&m->w, E_RUBY_FL_USHIFT);
	if (kind->flag == E_RARRAY_EMBED_FLAG)
		ret |= length_bits(m, E_RARRAY_EMBED_LEN_SHIFT, 2);
	if (kind->flag == E_RSTRUCT_EMBED_LEN_MASK)
		ret = (ret & ~value_of(m, kind->flag)) | length_bits(m, E_RSTRUCT_EMBED_LEN_SHIFT, 2);
	if (kind->id == S_hash && kind->flag == NONE)
		ret |= length_bits(m, E_RHASH_AR_TABLE_SIZE_SHIFT, 2) | length_bits(m, E_RHASH_AR_TABLE_BOUND_SHIFT, 2);
	if (kind->id == S_string && kind->flag == NONE)
		ret |= length_bits(m, E_RSTRING_EMBED_LEN_SHIFT, 5);
	if (has_struct(m, S_shape))
		ret |= (uint64_t)kind->shape << 32;
	return ret;
}

/* Makes all objects, without what is in them. */
static void put_objects(struct maker *m, struct page pages[2])
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint64_t at;

		if (!has_struct(m, kinds[i].id) || !is_there(m, kinds[i].type) || !is_there(m, kinds[i].imemo))
			continue;
		at = take_slot(m, pages, slot_bytes(m, kinds[i].id));
		if (at == 0)
			continue;
		put(m, at, F_basic_flags, flags_of(m, &kinds[i]));
		m->objects[m->nr_objects++] = (struct object){at, kinds[i].id};
	}
}

/* The class of most objects. */
static uint64_t shop(const struct maker *m)
{
	for (size_t i = 0; i < m->nr_objects; i++)
		if (m->objects[i].id == S_class)
			return m->objects[i].address;
	end_by_abort("there is no class");
	return 0;
}

static void fill_objects(struct maker *m)
{
	for (size_t i = 0; i < m->nr_objects; i++) {
		const struct object *object = &m->objects[i];

		if (object->id == S_class && has_struct(m, S_class_slot))
			fill(m, object->address, S_class_slot);
		fill(m, object->address, object->id);
		if (object->id == S_class && !layout_has(m->w.layout, F_class_ptr))
			fill(m, object->address + size_of(&m->w, S_class), S_classext);
		if (layout_has(m->w.layout, F_class_slot_classpath) && object->address == shop(m))
			put(m, object->address, F_class_slot_classpath, new_string(&m->w, HEAP_CLASS_NAME));
		put(m, object->address, F_basic_klass, shop(m));
	}
}

/* The root, shapes with one and two instance variables, and one that is too complex. */
static void put_shapes_of_objects(struct maker *m)
{
	enum { SHAPES = 4 };
	const uint64_t size = size_of(&m->w, S_shape), tree = allocate(&m->w, 64);
	uint64_t shapes;

	if (!has_struct(m, S_shape))
		return;
	shapes = allocate(&m->w, SHAPES * size);
	for (uint64_t i = 0; i < SHAPES; i++) {
		const uint64_t shape = shapes + i * size;

		put(m, shape, F_shape_next_iv_index, i);
		put(m, shape, F_shape_fields, i);
		put(m, shape, F_shape_capacity, 4);
		put(m, shape, F_shape_parent_id, i > 0 ? i - 1 : -1U);
		put(m, shape, F_shape_edge_name, i > 0 ? new_id(&m->w, "@ivar") : 0);
		put(m, shape, F_shape_type, i == 0 ? 0 : value_of(m, i == 3 ? E_SHAPE_OBJ_TOO_COMPLEX : E_SHAPE_IVAR));
	}
	put(m, HEAP_VM, F_vm_shape_list, shapes);
	put(m, HEAP_VM, F_vm_next_shape_id, SHAPES);
	put(m, tree, F_shape_tree_list, shapes);
	put_word(&m->w, HEAP_VARIABLES + VARIABLE_SHAPE_TREE * 8, tree);
	/* Since 4.0, the tree itself is the variable. */
	if (layout_has(m->w.layout, F_shape_fields) && layout_has(m->w.layout, F_shape_tree_list))
		put_word(&m->w,
			 HEAP_VARIABLES + VARIABLE_SHAPE_TREE * 8 + m->w.layout->members[F_shape_tree_list].offset,
			 shapes);
}

/* The table of the instance variables of objects that have no room for them. */
static void put_generic(struct maker *m)
{
	const uint64_t table = structs(m, S_st, 1);
	uint64_t entries, at;

	put_word(&m->w, HEAP_VARIABLES + VARIABLE_GENERIC_IVARS * 8, table);
	if (!layout_has(m->w.layout, F_st_entries))
		return;
	memcpy(&entries, bytes_at(&m->w, table + m->w.layout->members[F_st_entries].offset, 8), 8);
	at = entries;
	for (size_t i = 0, found = 0; i < m->nr_objects && found < ENTRIES; i++) {
		if (m->objects[i].id != S_string && m->objects[i].id != S_typed_data)
			continue;
		put(m, at, F_st_entry_key, m->objects[i].address);
		if (has_struct(m, S_generic_ivars))
			put(m, at, F_st_entry_record, structs(m, S_generic_ivars, 1));
		at += size_of(&m->w, S_st_entry);
		found++;
	}
}

static void put_globals(struct maker *m)
{
	const uint64_t table = structs(m, S_id_table, 1), items = allocate(&m->w, GLOBALS * size_of(&m->w, S_id_item));
	const uint64_t variable = structs(m, S_global_var, 1);

	if (table == 0 || variable == 0 || !has_struct(m, S_global_entry))
		return;
	put(m, table, F_id_table_capa, GLOBALS);
	put(m, table, F_id_table_items, items);
	for (uint64_t i = 1; i <= GLOBALS_USED; i++) {
		const uint64_t entry = allocate(&m->w, size_of(&m->w, S_global_entry));

		put(m, entry, F_global_entry_id, (1000 + i) << enumerator(&m->w, E_RUBY_ID_SCOPE_SHIFT));
		put(m, entry, F_global_entry_var, variable);
		put(m, items + i * size_of(&m->w, S_id_item), F_id_item_key, 1000 + i);
		put(m, items + i * size_of(&m->w, S_id_item), F_id_item_val, entry);
	}
	put_word(&m->w, HEAP_VARIABLES + VARIABLE_GLOBALS * 8, table);
}

/* Links one struct to the head of a list, in a ring (ccan/list/list.h); with `to` 0, the list is empty. */
static void link_one(struct maker *m, uint64_t at, enum layout_member_id head, uint64_t to, enum layout_member_id node)
{
	const struct layout *layout = m->w.layout;
	const uint64_t next = layout->members[F_list_node_next].offset;
	const uint64_t first = at + layout->members[head].offset;

	if (!layout_has(layout, head))
		return;
	put_word(&m->w, first, first - next);
	if (to != 0 && layout_has(layout, node)) {
		put_word(&m->w, first, to + layout->members[node].offset);
		put_word(&m->w, to + layout->members[node].offset + next, first - next);
	}
}

/* Gives code what its name consists of. Returns where its instructions are. */
static uint64_t name_code(struct maker *m, uint64_t code)
{
	const struct layout_member *members = m->w.layout->members;
	uint64_t body, encoded;

	memcpy(&body, bytes_at(&m->w, code + members[F_iseq_body].offset, 8), 8);
	memcpy(&encoded, bytes_at(&m->w, body + members[F_body_iseq_encoded].offset, 8), 8);
	put(m, body, F_body_type, value_of(m, E_ISEQ_TYPE_METHOD));
	put(m, body, F_body_label, new_string(&m->w, "open"));
	put(m, body, F_body_pathobj, new_string(&m->w, "/srv/shop.rb"));
	put(m, body, F_body_local_iseq, code);
	put(m, body, F_body_parent_iseq, 0);
	return encoded;
}

/* An execution context with one frame. Only its stack refers to the object `alone`. */
static void put_context(struct maker *m, uint64_t ec, uint64_t thread, uint64_t fiber, uint64_t alone)
{
	const uint64_t stack = allocate(&m->w, STACK_WORDS * 8), end = stack + STACK_WORDS * 8;
	const uint64_t cfp = end - 2 * size_of(&m->w, S_cfp), ep = stack + 5 * 8;
	uint64_t code = 0, method = 0;

	for (size_t i = 0; i < m->nr_objects; i++) {
		code = m->objects[i].id == S_iseq && code == 0 ? m->objects[i].address : code;
		method = m->objects[i].id == S_ment ? m->objects[i].address : method;
	}
	put_word(&m->w, stack, next_object(m));
	put_word(&m->w, stack + 8, alone);
	put_word(&m->w, ep - 16, method);
	put_word(&m->w, ep, value_of(m, E_VM_FRAME_MAGIC_METHOD) | value_of(m, E_VM_ENV_FLAG_LOCAL));
	put(m, cfp, F_cfp_iseq, code);
	put(m, cfp, F_cfp_ep, ep);
	put(m, cfp, F_cfp_sp, ep + 24);
	put(m, cfp, F_cfp_pc, name_code(m, code) + 8);
	put(m, ec, F_ec_thread_ptr, thread);
	put(m, ec, F_ec_fiber_ptr, fiber);
	put(m, ec, F_ec_vm_stack, stack);
	put(m, ec, F_ec_vm_stack_size, STACK_WORDS);
	put(m, ec, F_ec_cfp, cfp);
	put(m, ec, F_ec_machine_end, stack + 128);
	put(m, ec, F_ec_machine_start, end);
	put(m, ec, F_ec_local_storage, structs(m, S_id_table, 1));
}

/* A fiber, and its object, which is of the same type as all Fibers. */
static uint64_t put_fiber(struct maker *m, uint64_t thread, uint64_t self, uint64_t type,
			  enum layout_enumerator_id status, uint64_t alone)
{
	const uint64_t fiber = structs(m, S_fiber, 1);

	put(m, fiber, F_fiber_status, value_of(m, status));
	put(m, fiber, F_fiber_self, self);
	put(m, self, F_typed_data_type, type);
	put(m, self, F_typed_data_data, fiber);
	put_context(m, fiber + m->w.layout->members[F_fiber_ec].offset, thread, fiber, alone);
	return fiber;
}

static void put_threads(struct maker *m)
{
	const uint64_t thread = structs(m, S_thread, 1), type = structs(m, S_data_type, 1);
	const uint64_t ractor = has_struct(m, S_ractor) ? structs(m, S_ractor, 1) : 0;
	uint64_t selves[2] = {0}, fiber;

	for (size_t i = 0, found = 0; i < m->nr_objects && found < 2; i++)
		if (m->objects[i].id == S_typed_data)
			selves[found++] = m->objects[i].address;
	fiber = put_fiber(m, thread, selves[0], type, E_FIBER_RESUMED, m->objects[m->nr_objects - 1].address);
	put_fiber(m, thread, selves[1], type, E_FIBER_SUSPENDED, m->objects[m->nr_objects - 2].address);
	put(m, thread, F_thread_root_fiber, fiber);
	put(m, thread, F_thread_ec, fiber + m->w.layout->members[F_fiber_ec].offset);
	put(m, thread, F_thread_vm, HEAP_VM);
	put(m, thread, F_thread_ractor, ractor);
	put(m, thread, F_thread_status, value_of(m, E_THREAD_RUNNABLE));
	put(m, HEAP_VM, F_vm_main_thread, thread);
	put(m, HEAP_VM, F_vm_main_ractor, ractor);
	link_one(m, HEAP_VM, F_vm_living_threads, thread, F_thread_node);
	link_one(m, HEAP_VM, F_vm_gvl_queue, 0, F_thread_gvl_node);
	if (ractor == 0)
		return;
	put(m, ractor, F_ractor_id, 1);
	link_one(m, HEAP_VM, F_vm_ractors, ractor, F_ractor_node);
	link_one(m, ractor, F_ractor_threads, thread, F_thread_node);
	link_one(m, ractor, F_ractor_gvl_queue, 0, F_thread_gvl_node);
}

static void set_bits(struct maker *m, uint64_t at, enum layout_member_id id)
{
	const struct layout_member *member = &m->w.layout->members[id];

	if (member->present)
		memset(bytes_at(&m->w, at + member->offset, member->size), 0xff, member->size);
}

/* Both pages of the heap, and the list of them. */
static void put_pages(struct maker *m, const struct page pages[2])
{
	const bool darray = layout_has(m->w.layout, F_darray_size) && layout_has(m->w.layout, F_objspace_slots_room);
	const uint64_t before = darray ? size_of(&m->w, S_darray) : 0, list = allocate(&m->w, before + 2 * 8);
	uint64_t objspace, start = IMAGE_STACK;

	memcpy(&objspace, bytes_at(&m->w, HEAP_VM + m->w.layout->members[F_vm_objspace].offset, 8), 8);
	if (darray)
		put(m, list, F_darray_size, 2);
	put(m, objspace, F_objspace_pages, list);
	put(m, objspace, F_objspace_nr_pages, 2);
	for (size_t i = 0; i < 2; i++) {
		const uint64_t page = allocate(&m->w, size_of(&m->w, S_heap_page));

		put_word(&m->w, list + before + i * 8, page);
		put(m, page, F_heap_page_start, start);
		put(m, page, F_heap_page_total_slots, (pages[i].end - start) / pages[i].slot_size);
		put(m, page, F_heap_page_slot_size, pages[i].slot_size);
		set_bits(m, page, F_heap_page_mark_bits);
		start = pages[i].end;
	}
}

static void place_pages(struct maker *m, struct page pages[2])
{
	const bool several = layout_has(m->w.layout, F_heap_page_slot_size);
	const uint64_t small = several ? SMALL_SLOT : size_of(&m->w, S_rvalue), large = several ? LARGE_SLOT : small;
	const uint64_t middle = IMAGE_STACK + SMALL_SLOTS * small;

	pages[0].next = IMAGE_STACK;
	pages[0].end = pages[1].next = middle;
	pages[0].slot_size = small;
	pages[1].end = middle + LARGE_SLOTS * large;
	pages[1].slot_size = large;
	m->w.stack.next = pages[1].end;
}

/* Puts the three regions into the image. */
static void put_image(const struct maker *m, size_t index, struct heap_seed *ret)
{
	const size_t context = (size_t)(HEAP_VM + size_of(&m->w, S_vm) + 7 - IMAGE_CONTEXT) / 8 * 8;
	const size_t slots = (size_t)(m->w.stack.next - IMAGE_STACK), outside = (size_t)(m->w.heap.next - IMAGE_HEAP);

	ret->length = IMAGE_HEADER + context + slots + outside;
	if (context > CONTEXT_SIZE || slots > SLOTS_SIZE || ret->length > HEAP_IMAGE_MAX)
		end_by_abort("a heap is too long");
	memset(ret->image, 0, IMAGE_HEADER);
	ret->image[0] = (uint8_t)index;
	ret->image[2] = (uint8_t)context;
	ret->image[3] = (uint8_t)(context >> 8);
	ret->image[4] = (uint8_t)slots;
	ret->image[5] = (uint8_t)(slots >> 8);
	memcpy(ret->image + IMAGE_HEADER, m->w.context.bytes, context);
	memcpy(ret->image + IMAGE_HEADER + context, m->w.stack.bytes, slots);
	memcpy(ret->image + IMAGE_HEADER + context + slots, m->w.heap.bytes, outside);
}

void heap_seed_build(const struct layout *layout, size_t index, struct heap_seed *ret)
{
	static uint8_t context[CONTEXT_SIZE], slots[SLOTS_SIZE], outside[OUTSIDE_SIZE];
	static struct maker m;
	struct page pages[2];

	memset(context, 0, sizeof(context));
	memset(slots, 0, sizeof(slots));
	memset(outside, 0, sizeof(outside));
	ret->addresses.nr_objects = 0;
	m = (struct maker){
	    .w = {.layout = layout,
		  .program = &ret->addresses,
		  .context = {IMAGE_CONTEXT, IMAGE_CONTEXT, context, CONTEXT_SIZE},
		  .stack = {IMAGE_STACK, IMAGE_STACK, slots, SLOTS_SIZE},
		  .heap = {IMAGE_HEAP, IMAGE_HEAP, outside, OUTSIDE_SIZE}},
	};
	place_pages(&m, pages);
	put_symbols(&m.w);
	put_objects(&m, pages);
	put_shapes_of_objects(&m);
	fill(&m, HEAP_VM, S_vm);
	put_pages(&m, pages);
	put_generic(&m);
	put_globals(&m);
	fill_objects(&m);
	put_threads(&m);
	put_word(&m.w, HEAP_VARIABLES + VARIABLE_OBJECT_CLASS * 8, shop(&m));
	for (uint64_t i = VARIABLE_GLOBALS + 2; i < HEAP_NR_VARIABLES; i++)
		put_word(&m.w, HEAP_VARIABLES + i * 8, next_object(&m));
	ret->nr_objects = m.nr_objects;
	put_image(&m, index, ret);
}
