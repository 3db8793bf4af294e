#include "heap_structs.h"

#include <string.h>

/* How many levels of structs an object leads to. */
enum { LEVELS_MAX = 5 };

/* Members that are numbers. */
static const struct {
	enum layout_member_id id;
	uint64_t value;
} numbers[] = {
    {F_st_entries_start, 0},
    {F_st_entries_bound, ENTRIES},
    {F_st_entry_power, 2},
    {F_st_bin_power, 3},
    {F_st_num_entries, ENTRIES},
    {F_st_entry_hash, 7},
    {F_id_table_capa, ENTRIES},
    {F_id_item_key, 1},
    {F_string_len, 5},
    {F_string_heap_len, 5},
    {F_string_embed_len, 5},
    {F_string_capa, 10},
    {F_array_heap_len, FEW},
    {F_array_capa, FEW},
    {F_object_numiv, FEW},
    {F_struct_len, FEW},
    {F_bignum_len, FEW},
    {F_generic_ivars_numiv, FEW},
    {F_env_size, FEW},
    {F_tmpbuf_cnt, FEW},
    {F_tmpbuf_bytes, FEW * 8},
    {F_tmpbuf_marked, 1},
    {F_tmpbuf_next, 0},
    {F_body_iseq_size, FEW},
    {F_body_insns_size, 1},
    {F_body_local_table_size, 2},
    {F_body_ci_size, 1},
    {F_body_is_size, 2},
    {F_body_ivc_size, 0},
    {F_body_icvarc_size, 1},
    {F_body_ise_size, 1},
    {F_body_ic_size, 1},
    {F_body_mark_bits, 5},
    {F_body_has_kw, 1},
    {F_body_opt_num, 1},
    {F_keyword_num, 2},
    {F_keyword_required_num, 1},
    {F_catch_table_size, 1},
    {F_cc_entries_capa, 1},
    {F_cc_entries_len, 1},
    {F_classext_superclass_depth, 2},
    {F_match_ext_allocated, 2},
    {F_match_ext_offsets, 1},
    {F_pattern_alloc, 16},
    {F_pattern_repeat_range_alloc, 1},
    {F_pattern_chain, 0},
    {F_io_rbuf_capa, 100},
    {F_io_fd, 5},
    {F_typed_data_typed_flag, 1},
    {F_block_type, 0},
    {F_fiber_native_size, FEW},
    {F_fiber_prev, 0},
    {F_hook_next, 0},
    {F_registered_next, 0},
    {F_iv_entry_index, 1},
    {F_class_slot_permanent, 1},
};

/* Members that lead to another struct, which is repeated so often. */
static const struct {
	enum layout_member_id id;
	enum layout_struct_id to;
	unsigned int count;
} leads[] = {
    {F_st_entries, S_st_entry, ENTRIES},
    {F_id_table_items, S_id_item, ENTRIES},
    {F_iseq_body, S_body, 1},
    {F_body_insns, S_insn, 1},
    {F_body_call_data, S_call_data, 1},
    {F_body_is_entries, S_is_entry, 4},
    {F_body_catch_table, S_catch_table, 1},
    {F_body_keyword, S_keyword, 1},
    {F_ment_def, S_mdef, 1},
    {F_mdef_hooks, S_hook_list, 1},
    {F_hook_list_hooks, S_hook, 1},
    {F_iseq_hooks, S_hook_list, 1},
    {F_class_ptr, S_classext, 1},
    {F_class_m_tbl, S_id_table, 1},
    {F_classext_m_tbl, S_id_table, 1},
    {F_classext_const_tbl, S_id_table, 1},
    {F_classext_cvc_tbl, S_id_table, 1},
    {F_classext_cc_tbl, S_id_table, 1},
    {F_classext_callable_m_tbl, S_id_table, 1},
    {F_classext_iv_tbl, S_st, 1},
    {F_classext_iv_index_tbl, S_st, 1},
    {F_classext_box, S_box, 1},
    {F_class_boxable_table, S_st, 1},
    {F_hash_st, S_st, 1},
    {F_hash_ar, S_ar_table, 1},
    {F_file_fptr, S_io, 1},
    {F_regexp_ptr, S_pattern, 1},
    {F_match_ext, S_match_ext, 1},
    {F_typed_data_type, S_data_type, 1},
    {F_typed_data_data, S_proc, 1},
    {F_plain_data_data, S_st, 1},
    {F_fields_table, S_st, 1},
    {F_generic_ivars_table, S_st, 1},
    {F_is_entry_ivar, S_iv_entry, 1},
    {F_cvar_cache_entry, S_cvar_entry, 1},
    {F_cc_entries_entries, S_cc_entry, 1},
    {F_vm_objspace, S_objspace, 1},
    {F_vm_loading_table, S_st, 1},
    {F_vm_root_box, S_box, 1},
    {F_vm_hooks, S_hook, 1},
    {F_vm_global_objects, S_registered, 1},
    {F_objspace_finalizers, S_st, 1},
    {F_objspace_registered, S_registered, 1},
    {F_registered_varptr, S_st, 1},
    {F_ec_local_storage, S_id_table, 1},
    {F_ractor_storage, S_id_table, 1},
    {F_ractor_values, S_st, 1},
};

/* Members that lead to words. Most of the words refer to objects. */
static const enum layout_member_id words[] = {
    F_array_heap_ptr,	   F_object_ivptr,	F_struct_ptr,	    F_bignum_digits,	      F_env_values,
    F_tmpbuf_ptr,	   F_body_iseq_encoded, F_body_local_table, F_keyword_default_values, F_constant_cache_segments,
    F_generic_ivars_ivptr, F_classext_iv_ptr,	F_fields_ptr,	    F_class_slot_iv_ptr,      F_pattern_code,
    F_fiber_native,
};

bool has_struct(const struct maker *m, enum layout_struct_id id)
{
	return m->w.layout->sizes[id].present;
}

void put(struct maker *m, uint64_t at, enum layout_member_id id, uint64_t value)
{
	const struct layout_member *member = &m->w.layout->members[id];

	if (member->present && member->size > 0 && member->size <= 8)
		set_member(&m->w, at, id, value);
}

uint64_t next_object(struct maker *m)
{
	m->turn = (m->turn * 5 + 3) % (m->nr_objects - STRUCTS_ALONE);
	return m->objects[m->turn].address;
}

static uint64_t put_words(struct maker *m, size_t count)
{
	const uint64_t at = allocate(&m->w, count * 8);

	for (size_t i = 0; i < count; i++)
		put_word(&m->w, at + i * 8, i % 4 == 3 ? 0 : next_object(m));
	return at;
}

uint64_t structs(struct maker *m, enum layout_struct_id id, size_t count)
{
	const uint64_t size = (size_of(&m->w, id) + 7) / 8 * 8;
	uint64_t at;

	if (!has_struct(m, id) || m->level == LEVELS_MAX)
		return 0;
	at = allocate(&m->w, count * size);
	m->level++;
	for (size_t i = 0; i < count; i++)
		fill(m, at + i * size_of(&m->w, id), id);
	m->level--;
	return at;
}

/* Writes a member that is a number. Returns false if it is none. */
static bool put_number(struct maker *m, uint64_t at, enum layout_member_id id)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].id == id) {
			put(m, at, id, numbers[i].value);
			return true;
		}
	return false;
}

/* Writes a member that leads to another struct, or to words. */
static void put_lead(struct maker *m, uint64_t at, enum layout_member_id id)
{
	for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++)
		if (leads[i].id == id)
			put(m, at, id, structs(m, leads[i].to, leads[i].count));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i] == id)
			put(m, at, id, put_words(m, ENTRIES));
}

/* Lets a member refer to an object, if there is nothing in its place. Alternatives have the same place. */
static void put_object(struct maker *m, uint64_t at, enum layout_member_id id)
{
	const struct layout_member *member = &m->w.layout->members[id];
	uint64_t word;

	if (member->size != 8 || member->width != 0 || id == F_basic_flags)
		return;
	memcpy(&word, bytes_at(&m->w, at + member->offset, 8), 8);
	if (word == 0)
		put_word(&m->w, at + member->offset, next_object(m));
}

static uint64_t put_text(struct maker *m, const char *text)
{
	const uint64_t at = allocate(&m->w, 16);

	memcpy(bytes_at(&m->w, at, strlen(text)), text, strlen(text));
	return at;
}

void fill(struct maker *m, uint64_t at, enum layout_struct_id id)
{
	for (int pass = 0; pass < 3; pass++)
		for (int i = 0; i < LAYOUT_MEMBERS; i++) {
			const enum layout_member_id member = (enum layout_member_id)i;

			if (layout_member_specs[i].parent != (int)id || !layout_has(m->w.layout, member) ||
			    (pass != 1 && put_number(m, at, member)))
				continue;
			if (pass == 1)
				put_lead(m, at, member);
			else if (pass == 2)
				put_object(m, at, member);
		}
	if (id == S_data_type)
		put(m, at, F_data_type_name, put_text(m, m->turn % 2 ? "proc" : "binding"));
	if (id == S_string)
		put(m, at, F_string_heap_ptr, put_text(m, "st\xc3\xb6re"));
}
