#include "synthetic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* A test that takes longer is in an endless loop: its program is ended. */
#define TEST_SECONDS 60

#define PAGES (SYNTHETIC_SIZE / MEMORY_PAGE)

/* Serials that an inner Array of the symbol table holds, and how many inner Arrays there are. */
enum { ID_UNIT = 16, ID_ARRAYS = 32, ID_SHIFT = 5, LAST_OPERATOR = 150 };

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
    {E_RUBY_ID_SCOPE_SHIFT, ID_SHIFT},
    {E_imemo_mask, 0xf},
    {E_ID_ENTRY_SIZE, 2},
    {E_ID_ENTRY_UNIT, ID_UNIT},
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
    {E_tLAST_OP_ID, LAST_OPERATOR},
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
};

static bool is_object(enum layout_struct_id id)
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
	return is_object(id) ? (uint32_t)layout->sizes[S_basic].value : 0;
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

static struct layout *create_layout(void)
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

static void source(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	struct synthetic *s = context;

	s->copied = true;
	for (size_t i = 0; i < count; i++) {
		uint64_t page = (pages[i] - SYNTHETIC_BASE) / MEMORY_PAGE;

		ok[i] = pages[i] >= SYNTHETIC_BASE && page < PAGES && s->mapped[page];
		if (ok[i])
			memcpy(buffer + i * MEMORY_PAGE, s->bytes + page * MEMORY_PAGE, MEMORY_PAGE);
	}
}

static void create_symbols(struct synthetic *s)
{
	uint64_t arrays[ID_ARRAYS], none[ID_UNIT * 2] = {0};

	for (size_t i = 0; i < ID_ARRAYS; i++)
		arrays[i] = synthetic_array(s, none, ID_UNIT * 2);
	s->ruby.symbols = synthetic_struct(s, S_symbols);
	synthetic_set(s, s->ruby.symbols, F_symbols_ids, synthetic_array(s, arrays, ID_ARRAYS));
	synthetic_set(s, s->ruby.symbols, F_symbols_last_id, LAST_OPERATOR);
	s->serial = LAST_OPERATOR;
}

int synthetic_set_up(void **state)
{
	struct synthetic *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	alarm(TEST_SECONDS);
	s->bytes =
	    mmap(NULL, SYNTHETIC_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(s->bytes, MAP_FAILED);
	s->mapped = calloc(PAGES, 1);
	assert_non_null(s->mapped);
	s->next = SYNTHETIC_BASE + 0x1238;
	s->layout = create_layout();
	s->ruby.layout = s->layout;
	s->ruby.memory = memory_create(source, s, PAGES);
	assert_non_null(s->ruby.memory);
	create_symbols(s);
	*state = s;
	return 0;
}

int synthetic_tear_down(void **state)
{
	struct synthetic *s = *state;

	alarm(0);
	memory_destroy(s->ruby.memory);
	layout_destroy(s->layout);
	munmap(s->bytes, SYNTHETIC_SIZE);
	free(s->mapped);
	free(s);
	return 0;
}

void synthetic_with(struct synthetic *s, enum layout_member_id id)
{
	s->layout->members[id].present = true;
}

void synthetic_without(struct synthetic *s, enum layout_member_id id)
{
	s->layout->members[id] = (struct layout_member){0};
}

void synthetic_without_enumerator(struct synthetic *s, enum layout_enumerator_id id)
{
	s->layout->enumerators[id] = (struct layout_number){0};
}

/* A write that the snapshot must not hide. */
static void writing(struct synthetic *s)
{
	if (s->copied)
		assert_true(memory_forget(s->ruby.memory));
	s->copied = false;
}

uint64_t synthetic_allocate(struct synthetic *s, size_t size)
{
	uint64_t address = s->next, offset = address - SYNTHETIC_BASE;

	writing(s);
	assert_true(size <= SYNTHETIC_SIZE - offset - 64);
	/* Objects lie at every place of a page, and across two. */
	s->next += (size + 7) / 8 * 8 + 24;
	for (uint64_t page = offset / MEMORY_PAGE; page <= (offset + size) / MEMORY_PAGE; page++)
		s->mapped[page] = true;
	memset(s->bytes + offset, POISON, size);
	return address;
}

void synthetic_unmap(struct synthetic *s, uint64_t address)
{
	writing(s);
	s->mapped[(address - SYNTHETIC_BASE) / MEMORY_PAGE] = false;
}

void synthetic_put(struct synthetic *s, uint64_t address, const void *bytes, size_t length)
{
	uint64_t offset = address - SYNTHETIC_BASE;

	writing(s);
	assert_true(address >= SYNTHETIC_BASE && offset + length <= SYNTHETIC_SIZE);
	assert_true(length == 0 || (s->mapped[offset / MEMORY_PAGE] && s->mapped[(offset + length - 1) / MEMORY_PAGE]));
	memcpy(s->bytes + offset, bytes, length);
}

void synthetic_put_word(struct synthetic *s, uint64_t address, uint64_t word)
{
	synthetic_put(s, address, &word, sizeof(word));
}

void synthetic_set(struct synthetic *s, uint64_t object, enum layout_member_id id, uint64_t value)
{
	const struct layout_member *member = &s->layout->members[id];
	uint64_t address = object + member->offset, old = 0;

	assert_true(member->present && member->size <= 8);
	if (member->width > 0) {
		uint64_t mask = ((UINT64_C(1) << member->width) - 1) << member->shift;

		memcpy(&old, s->bytes + (address - SYNTHETIC_BASE), member->size);
		assert_true(value < UINT64_C(1) << member->width);
		value = (old & ~mask) | value << member->shift;
	}
	synthetic_put(s, address, &value, member->size);
}

static void clear_members(struct synthetic *s, uint64_t address, enum layout_struct_id id)
{
	for (int m = 0; m < LAYOUT_MEMBERS; m++) {
		static const uint8_t zero;
		const struct layout_member *member = &s->layout->members[m];

		if (layout_member_specs[m].parent != (int)id || !member->present)
			continue;
		if (member->width > 0)
			synthetic_set(s, address, m, 0);
		for (size_t i = 0; member->width == 0 && i < member->size; i++)
			synthetic_put(s, address + member->offset + i, &zero, 1);
	}
}

uint64_t synthetic_struct(struct synthetic *s, enum layout_struct_id id)
{
	uint64_t address = synthetic_allocate(s, (size_t)s->layout->sizes[id].value);

	if (is_object(id))
		clear_members(s, address, S_basic);
	if (id == S_class_slot)
		clear_members(s, address, S_class);
	clear_members(s, address, id);
	return address;
}

uint64_t synthetic_object(struct synthetic *s, enum layout_struct_id id, uint64_t flags)
{
	uint64_t address = synthetic_struct(s, id);

	synthetic_set(s, address, F_basic_flags, flags);
	return address;
}

uint64_t synthetic_moved(struct synthetic *s, uint64_t destination)
{
	uint64_t object = synthetic_object(s, S_moved, synthetic_enum(s, E_RUBY_T_MOVED));

	synthetic_set(s, object, F_moved_destination, destination);
	return object;
}

uint64_t synthetic_enum(const struct synthetic *s, enum layout_enumerator_id id)
{
	assert_true(s->layout->enumerators[id].present);
	return (uint64_t)s->layout->enumerators[id].value;
}

uint64_t synthetic_imemo(struct synthetic *s, enum layout_struct_id id, enum layout_enumerator_id imemo_type)
{
	return synthetic_object(s, id,
				synthetic_enum(s, E_RUBY_T_IMEMO) | synthetic_enum(s, imemo_type)
									<< synthetic_enum(s, E_RUBY_FL_USHIFT));
}

uint64_t synthetic_string(struct synthetic *s, const char *text)
{
	uint64_t bytes = synthetic_allocate(s, strlen(text) + 1);
	uint64_t object =
	    synthetic_object(s, S_string, synthetic_enum(s, E_RUBY_T_STRING) | synthetic_enum(s, E_RSTRING_NOEMBED));

	synthetic_put(s, bytes, text, strlen(text));
	synthetic_set(s, object, F_string_len, strlen(text));
	synthetic_set(s, object, F_string_heap_ptr, bytes);
	return object;
}

uint64_t synthetic_array(struct synthetic *s, const uint64_t *elements, size_t count)
{
	uint64_t copy = synthetic_allocate(s, count * 8);
	uint64_t object = synthetic_object(s, S_array, synthetic_enum(s, E_RUBY_T_ARRAY));

	synthetic_put(s, copy, elements, count * 8);
	synthetic_set(s, object, F_array_heap_len, count);
	synthetic_set(s, object, F_array_heap_ptr, copy);
	return object;
}

static uint64_t word_at(const struct synthetic *s, uint64_t address)
{
	uint64_t word;

	memcpy(&word, s->bytes + (address - SYNTHETIC_BASE), 8);
	return word;
}

void synthetic_name_id(struct synthetic *s, uint64_t id, const char *name)
{
	const struct layout_member *members = s->layout->members;
	uint64_t serial = id > LAST_OPERATOR ? id >> ID_SHIFT : id;
	uint64_t outer = word_at(s, s->ruby.symbols + members[F_symbols_ids].offset), inner;

	assert_true(serial < ID_ARRAYS * ID_UNIT);
	inner = word_at(s, word_at(s, outer + members[F_array_heap_ptr].offset) + serial / ID_UNIT * 8);
	synthetic_put_word(s, word_at(s, inner + members[F_array_heap_ptr].offset) + serial % ID_UNIT * 2 * 8,
			   synthetic_string(s, name));
}

uint64_t synthetic_id(struct synthetic *s, const char *name)
{
	uint64_t id = ++s->serial << ID_SHIFT | 9;

	synthetic_set(s, s->ruby.symbols, F_symbols_last_id, s->serial);
	synthetic_name_id(s, id, name);
	return id;
}

uint64_t synthetic_class(struct synthetic *s, enum layout_enumerator_id type, const char *path, bool permanent)
{
	uint64_t klass = synthetic_object(s, S_class_slot, synthetic_enum(s, type));

	if (path)
		synthetic_set(s, klass, F_class_slot_classpath, synthetic_string(s, path));
	synthetic_set(s, klass, F_class_slot_permanent, permanent);
	return klass;
}

uint64_t synthetic_singleton(struct synthetic *s, uint64_t of)
{
	uint64_t klass = synthetic_class(s, E_RUBY_T_CLASS, NULL, false);

	synthetic_set(s, klass, F_basic_flags,
		      synthetic_enum(s, E_RUBY_T_CLASS) | synthetic_enum(s, E_RUBY_FL_SINGLETON));
	synthetic_set(s, klass, F_class_slot_attached_object, of);
	return klass;
}

uint64_t synthetic_method(struct synthetic *s, enum layout_enumerator_id type, uint64_t owner, const char *name)
{
	uint64_t method = synthetic_imemo(s, S_ment, E_imemo_ment), definition = synthetic_struct(s, S_mdef);

	synthetic_set(s, method, F_ment_def, definition);
	synthetic_set(s, method, F_ment_owner, owner);
	synthetic_set(s, definition, F_mdef_type, synthetic_enum(s, type));
	synthetic_set(s, definition, F_mdef_original_id, synthetic_id(s, name));
	return method;
}

uint64_t synthetic_body(struct synthetic *s, uint64_t code)
{
	return word_at(s, code + s->layout->members[F_iseq_body].offset);
}

uint64_t synthetic_code(struct synthetic *s, enum layout_enumerator_id type, const char *label)
{
	uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), body = synthetic_struct(s, S_body);

	synthetic_set(s, code, F_iseq_body, body);
	synthetic_set(s, body, F_body_type, synthetic_enum(s, type));
	synthetic_set(s, body, F_body_iseq_size, 100);
	synthetic_set(s, body, F_body_iseq_encoded, synthetic_allocate(s, 800));
	synthetic_set(s, body, F_body_label, synthetic_string(s, label));
	synthetic_set(s, body, F_body_pathobj, synthetic_string(s, "/app/x.rb"));
	synthetic_set(s, body, F_body_local_iseq, code);
	return code;
}
