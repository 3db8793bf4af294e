#include "synthetic_layout.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
	enum layout_enumerator_id id;
	int64_t value;
} enumerators[] = {
    {E_VM_FRAME_MAGIC_MASK, 0xff0001},
    {E_VM_FRAME_MAGIC_METHOD, 0xa10001},
    {E_VM_FRAME_MAGIC_BLOCK, 0xa20001},
    {E_VM_FRAME_MAGIC_CLASS, 0xa30001},
    {E_VM_FRAME_MAGIC_TOP, 0xa40001},
    {E_VM_FRAME_MAGIC_CFUNC, 0xa50001},
    {E_VM_FRAME_MAGIC_IFUNC, 0xa60001},
    {E_VM_FRAME_MAGIC_EVAL, 0xa70001},
    {E_VM_FRAME_MAGIC_RESCUE, 0xa80001},
    {E_VM_FRAME_MAGIC_DUMMY, 0xa90001},
    {E_VM_FRAME_FLAG_FINISH, 0x400},
    {E_VM_ENV_FLAG_LOCAL, 0x2},
    {E_VM_ENV_FLAG_ESCAPED, 0x200},
    {E_imemo_env, 9},
    {E_imemo_cref, 3},
    {E_imemo_svar, 12},
    {E_imemo_ifunc, 5},
    {E_imemo_ment, 14},
    {E_imemo_iseq, 10},
    {E_RUBY_T_MASK, 0x3f},
    {E_RUBY_T_CLASS, 0x22},
    {E_RUBY_T_MODULE, 0x23},
    {E_RUBY_T_ICLASS, 0x24},
    {E_RUBY_T_STRING, 0x25},
    {E_RUBY_T_DATA, 0x2c},
    {E_RUBY_T_ARRAY, 0x26},
    {E_RUBY_T_IMEMO, 0x27},
    {E_RUBY_T_MOVED, 0x28},
    {E_RUBY_FL_PROMOTED, INT64_C(3) << 10},
    {E_RUBY_FL_USHIFT, 20},
    {E_RUBY_FL_SINGLETON, INT64_C(1) << 27},
    {E_RUBY_Qnil, 0x24},
    {E_RUBY_SYMBOL_FLAG, 0x2c},
    {E_RUBY_SPECIAL_SHIFT, 8},
    {E_RSTRING_NOEMBED, INT64_C(1) << 25},
    {E_RSTRING_EMBED_LEN_MASK, INT64_C(0x1f) << 40},
    {E_RSTRING_EMBED_LEN_SHIFT, 40},
    {E_RARRAY_EMBED_FLAG, INT64_C(1) << 26},
    {E_RARRAY_EMBED_LEN_MASK, INT64_C(0xf) << 30},
    {E_RARRAY_EMBED_LEN_SHIFT, 30},
    {E_RUBY_ID_SCOPE_SHIFT, SYNTHETIC_ID_SHIFT},
    {E_imemo_mask, 0xf},
    {E_ID_ENTRY_SIZE, 2},
    {E_ID_ENTRY_UNIT, SYNTHETIC_ID_UNIT},
    {E_MJIT_FUNC_FAILED, 2},
    {E_NOT_COMPILED_JIT_ISEQ_FUNC, 3},
    {E_VM_FRAME_MAGIC_PROC, 0xaa0001},
    {E_VM_FRAME_MAGIC_LAMBDA, 0xab0001},
    {E_VM_FRAME_MAGIC_FINISH, 0xac0001},
    {E_imemo_callinfo, 6},
    {E_imemo_callcache, 8},
    {E_idMethodMissing, 0xb01},
    {E_VM_CALL_TAILCALL_bit, 3},
    {E_SHAPE_IVAR, 6},
    {E_ROBJECT_HEAP, 1 << 14},
    {E_tLAST_OP_ID, SYNTHETIC_LAST_OPERATOR},
    {E_THREAD_RUNNABLE, 2},
    {E_THREAD_STOPPED, 0},
    {E_THREAD_STOPPED_FOREVER, 3},
    {E_THREAD_KILLED, 1},
    {E_THREAD_TO_KILL, 4},
    {E_thread_invoke_type_none, 5},
    {E_FIBER_CREATED, 3},
    {E_FIBER_RESUMED, 0},
    {E_FIBER_SUSPENDED, 2},
    {E_FIBER_TERMINATED, 1},
    {E_RUNNING, 2},
    {E_VM_METHOD_TYPE_ISEQ, 7},
    {E_VM_METHOD_TYPE_CFUNC, 4},
    {E_BUILTIN_ATTR_C_TRACE, 0x40},
    {E_ISEQ_TYPE_TOP, 3},
    {E_ISEQ_TYPE_METHOD, 8},
    {E_ISEQ_TYPE_BLOCK, 1},
    {E_ISEQ_TYPE_CLASS, 12},
    {E_ISEQ_TYPE_RESCUE, 10},
    {E_ISEQ_TYPE_ENSURE, 5},
    {E_ISEQ_TYPE_EVAL, 6},
    {E_ISEQ_TYPE_MAIN, 11},
    {E_ISEQ_TYPE_PLAIN, 2},
    {E_RUBY_T_OBJECT, 0x21},
    {E_RUBY_T_FLOAT, 0x29},
    {E_RUBY_T_REGEXP, 0x2a},
    {E_RUBY_T_HASH, 0x2b},
    {E_RUBY_T_STRUCT, 0x2d},
    {E_RUBY_T_BIGNUM, 0x2e},
    {E_RUBY_T_FILE, 0x2f},
    {E_RUBY_T_MATCH, 0x30},
    {E_RUBY_T_COMPLEX, 0x31},
    {E_RUBY_T_RATIONAL, 0x32},
    {E_RUBY_T_SYMBOL, 0x33},
    {E_RUBY_T_NODE, 0x34},
    {E_RUBY_T_ZOMBIE, 0x35},
    {E_imemo_throw_data, 0},
    {E_imemo_memo, 1},
    {E_imemo_tmpbuf, 2},
    {E_imemo_alloc, 16},
    {E_imemo_ast, 4},
    {E_imemo_parser_strterm, 7},
    {E_imemo_constcache, 11},
    {E_imemo_fields, 13},
    {E_imemo_cvar_entry, 15},
    {E_imemo_subclasses, 17},
    {E_RUBY_FL_EXIVAR, INT64_C(1) << 9},
    {E_RUBY_ELTS_SHARED, INT64_C(1) << 22},
    {E_RARRAY_SHARED_ROOT_FLAG, INT64_C(1) << 23},
    {E_STR_NOFREE, INT64_C(1) << 24},
    {E_ROBJECT_EMBED, INT64_C(1) << 15},
    {E_RSTRUCT_EMBED_LEN_MASK, INT64_C(3) << 16},
    {E_RICLASS_IS_ORIGIN, INT64_C(1) << 18},
    {E_RICLASS_ORIGIN_SHARED_MTBL, INT64_C(1) << 19},
    {E_RCLASS_SUPERCLASSES_INCLUDE_SELF, INT64_C(1) << 28},
    {E_BIGNUM_EMBED_FLAG, INT64_C(1) << 29},
    {E_RHASH_ST_TABLE_FLAG, INT64_C(1) << 30},
    {E_RUBY_ENCODING_SHIFT, 45},
    {E_RUBY_ENCINDEX_UTF_16BE, 13},
    {E_RUBY_ENCINDEX_UTF_16LE, 14},
    {E_RUBY_ENCINDEX_UTF_16, 17},
    {E_RUBY_ENCINDEX_UTF_32BE, 15},
    {E_RUBY_ENCINDEX_UTF_32LE, 16},
    {E_RUBY_ENCINDEX_UTF_32, 18},
    {E_SHAPE_OBJ_TOO_COMPLEX, 9},
    {E_RUBY_Qundef, 0x54},
    {E_RUBY_FL_FREEZE, INT64_C(1) << 15},
    {E_RSTRUCT_EMBED_LEN_SHIFT, 32},
    {E_RSTRUCT_GEN_FIELDS, INT64_C(1) << 36},
    {E_RHASH_AR_TABLE_SIZE_MASK, INT64_C(0xf) << 48},
    {E_RHASH_AR_TABLE_SIZE_SHIFT, 48},
    {E_RHASH_AR_TABLE_BOUND_MASK, INT64_C(0xf) << 52},
    {E_RHASH_AR_TABLE_BOUND_SHIFT, 52},
    {E_RUBY_TYPED_DECL_MARKING, INT64_C(1) << 22},
    {E_RUBY_TYPED_FL_IS_TYPED_DATA, INT64_C(1) << 21},
    {E_block_type_ifunc, 1},
    {E_imemo_cdhash, 18},
    {E_MEMO_U3_IS_VALUE, INT64_C(1) << 24},
    {E_ISEQ_NOT_LOADED_YET, INT64_C(1) << 25},
    {E_ISEQ_USE_COMPILE_DATA, INT64_C(1) << 26},
    {E_ISEQ_MARKABLE_ISEQ, INT64_C(1) << 27},
    {E_METHOD_ENTRY_INVALIDATED, INT64_C(1) << 28},
    {E_VM_CALLCACHE_UNMARKABLE, INT64_C(1) << 25},
    {E_VM_CALLCACHE_SUPER, INT64_C(1) << 26},
    {E_VM_CALLCACHE_REFINEMENT, INT64_C(1) << 27},
    {E_SHAPE_ID_OFFSET_MASK, 0xffff},
    {E_SHAPE_ID_FL_TOO_COMPLEX, INT64_C(1) << 27},
    {E_SHAPE_ID_FL_COMPLEX, INT64_C(1) << 28},
    {E_RCLASS_BOXABLE, INT64_C(1) << 31},
    {E_VM_METHOD_TYPE_ATTRSET, 2},
    {E_VM_METHOD_TYPE_IVAR, 5},
    {E_VM_METHOD_TYPE_BMETHOD, 3},
    {E_VM_METHOD_TYPE_ALIAS, 9},
    {E_VM_METHOD_TYPE_REFINED, 1},
};

/* Members that are no words of 8 bytes. */
static const struct {
	enum layout_member_id id;
	uint32_t size;
	uint8_t shift, width;
} narrow[] = {
    {F_ractor_id, 4, 0, 0},
    {F_ractor_node, 16, 0, 0},
    {F_thread_node, 16, 0, 0},
    {F_thread_gvl_node, 16, 0, 0},
    {F_thread_status, 1, 3, 2},
    {F_thread_tid, 4, 0, 0},
    {F_nt_tid, 4, 0, 0},
    {F_fiber_status, 1, 5, 2},
    {F_mdef_type, 2, 6, 4},
    {F_mdef_alias_count, 4, 3, 20},
    {F_body_type, 4, 0, 0},
    {F_body_ci_size, 4, 0, 0},
    {F_body_ci_kw_size, 4, 0, 0},
    {F_body_iseq_size, 4, 0, 0},
    {F_body_first_lineno, 4, 0, 0},
    {F_body_insns_size, 4, 0, 0},
    {F_body_builtin_attrs, 4, 0, 0},
    {F_insn_line_no, 4, 0, 0},
    {F_succ_imm_part, 16, 0, 0},
    {F_succ_succ_part, 0, 0, 0},
    {F_succ_block_rank, 4, 0, 0},
    {F_succ_block_bits, 64, 0, 0},
    {F_string_embed_ary, 1, 0, 0},
    {F_class_slot_permanent, 1, 6, 1},
    {F_symbols_last_id, 4, 0, 0},
    {F_symbols_next_id, 4, 0, 0},
    {F_objspace_range, 16, 0, 0},
    {F_heap_page_total_slots, 2, 0, 0},
    {F_heap_page_slot_size, 2, 0, 0},
    {F_objspace_during_gc, 1, 4, 1},
    {F_objspace_during_compacting, 1, 5, 1},
    {F_heap_page_before_sweep, 1, 2, 1},
    {F_heap_page_mark_bits, 64, 0, 0},
    {F_heap_page_pinned_bits, 64, 0, 0},
    {F_heap_page_shady_bits, 64, 0, 0},
    {F_st_entry_power, 1, 0, 0},
    {F_st_bin_power, 1, 0, 0},
    {F_st_size_ind, 1, 0, 0},
    {F_mdef_overload, 1, 5, 1},
    {F_body_has_kw, 1, 6, 1},
    {F_body_is_size, 4, 0, 0},
    {F_body_ivc_size, 4, 0, 0},
    {F_body_icvarc_size, 4, 0, 0},
    {F_body_ise_size, 4, 0, 0},
    {F_body_ic_size, 4, 0, 0},
    {F_keyword_num, 4, 0, 0},
    {F_keyword_required_num, 4, 0, 0},
    {F_catch_table_size, 4, 0, 0},
    {F_catch_table_entries, 0, 0, 0},
    {F_cc_entries_len, 4, 0, 0},
    {F_id_table_capa, 4, 0, 0},
    {F_id_item_key, 4, 0, 0},
    {F_classext_shared_const_tbl, 1, 2, 1},
    {F_classext_is_origin, 1, 3, 1},
    {F_classext_shared_m_tbl, 1, 4, 1},
    {F_box_is_user, 1, 0, 0},
    {F_tmpbuf_marked, 1, 0, 0},
    {F_io_fd, 4, 0, 0},
    {F_block_type, 4, 0, 0},
    {F_iv_entry_index, 4, 0, 0},
    {F_ar_table_pairs, 128, 0, 0},
};

/* What other Rubies have in the place of something else. */
static const enum layout_member_id others[] = {
    F_symbols_next_id,
    F_class_slot_fields,
    F_mdef_reference_count,
    F_insn_position,
    F_classext_iv_ptr,
    F_classext_shape_id,
    F_cfp_flag,
    F_zjit_frame_iseq,
    F_symbol_entry_str,
    F_cfp_me,
    F_iseq_self,
    F_body_klass,
    F_vm_living_table,
    F_fiber_next_fiber,
    F_symbols_op_sym,
    F_symbols_id_str,
    F_st_bins,
    F_heap_row_start,
    F_heap_row_end,
    F_objspace_slots_room,
    F_heap_page_reciprocal,
    F_object_numiv,
    F_match_ext,
    F_hash_st,
    F_hash_ar,
    F_classext_box,
    F_shape_fields,
    F_classext_fields,
    F_classext_is_origin,
    F_tmpbuf_marked,
    F_body_mark_ary,
    F_struct_fields,
};

bool synthetic_is_object(enum layout_struct_id id)
{
	switch (id) {
	case S_env:
	case S_svar:
	case S_ment:
	case S_iseq:
	case S_string:
	case S_array:
	case S_class:
	case S_class_slot:
	case S_moved:
	case S_typed_data:
	case S_fields:
	case S_call_info:
	case S_call_cache:
	case S_object:
	case S_hash:
	case S_struct:
	case S_bignum:
	case S_regexp:
	case S_match:
	case S_file:
	case S_tmpbuf:
	case S_cref:
	case S_throw_data:
	case S_ifunc:
	case S_memo:
	case S_constcache:
	case S_cdhash:
	case S_ast:
		return true;
	default:
		return false;
	}
}

/* Where a struct's own members begin: an object's after its RBasic, an RClass's slot after the RClass. */
static uint32_t first_offset(const struct layout *layout, enum layout_struct_id id)
{
	if (id == S_class_slot)
		return (uint32_t)layout->sizes[S_class].value;
	return synthetic_is_object(id) ? (uint32_t)layout->sizes[S_basic].value : 0;
}

static void place_members(struct layout *layout, enum layout_struct_id id)
{
	uint32_t at = first_offset(layout, id);

	for (int m = 0; m < LAYOUT_MEMBERS; m++) {
		struct layout_member *member = &layout->members[m];

		if (layout_member_specs[m].parent != (int)id)
			continue;
		*member = (struct layout_member){.present = true, .size = 8};
		for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++) {
			if (narrow[i].id != (enum layout_member_id)m)
				continue;
			member->size = narrow[i].size;
			member->shift = narrow[i].shift;
			member->width = narrow[i].width;
		}
		member->offset = at + 8 + 8 * (uint32_t)(m % 3);
		at = member->offset + (member->size + 7) / 8 * 8;
	}
	layout->members[F_list_node_next].offset = 8; /* within the gap between two members */
	/* Strings and Arrays have room for embedded ones. */
	layout->sizes[id] = (struct layout_number){.present = true, .value = at + 64};
}

struct layout *synthetic_layout(void)
{
	struct layout *layout = layout_create();

	assert_non_null(layout);
	place_members(layout, S_basic);
	for (int id = 0; id < LAYOUT_STRUCTS; id++)
		if (id != S_basic)
			place_members(layout, id);
	for (size_t i = 0; i < sizeof(enumerators) / sizeof(enumerators[0]); i++)
		layout->enumerators[enumerators[i].id] =
		    (struct layout_number){.present = true, .value = enumerators[i].value};
	for (int id = 0; id < LAYOUT_ENUMERATORS; id++)
		assert_true(layout->enumerators[id].present);
	/* As in 2.5 and later, where that is no enumerator. */
	layout->constants[C_ID_ENTRY_UNIT] = layout->enumerators[E_ID_ENTRY_UNIT];
	layout->enumerators[E_ID_ENTRY_UNIT] = (struct layout_number){0};
	layout->functions[P_is_rescue_or_ensure_frame] = true;
	/* Tests of those Rubies put them back. */
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		layout->members[others[i]].present = false;
	return layout;
}
