#include "ruby/code.h"

/* vm_core.h, v2_5_0 to v4.0.5 and head: PATHOBJ_PATH, PATHOBJ_REALPATH. */
enum { PATHOBJ_PATH = 0, PATHOBJ_REALPATH = 1 };

/* iseq.c, v2_6_0 to v4.0.5 and head, struct succ_index_table, succ_index_lookup(): widths of the packed ranks. */
enum { IMMEDIATE_RANKS_A_WORD = 9, IMMEDIATE_RANK_BITS = 7, SMALL_RANK_BITS = 9, BLOCK_POSITIONS = 512 };

/*
 * iseq.h, v1_9_3_0 to v1_9_3_551: iseq_insn_info_entry.position and .line_no are `unsigned short`, later of 32 bits.
 */
#define SHORT_SIZE  2
#define SHORT_WORDS 65536u

bool code_is_at(const struct access *from, uint64_t iseq)
{
	struct access access = *from;
	uint64_t self;

	if (!layout_has(access.layout, F_iseq_self))
		return value_is_imemo(&access, iseq, E_imemo_iseq);
	if (!value_is_object(iseq))
		return false;
	/* iseq.c, prepare_iseq_build(). */
	self = access_member(&access, iseq, F_iseq_self);
	return value_is_object(self) && value_data(&access, self) == iseq && !access.failed;
}

uint64_t code_body(struct access *access, uint64_t iseq)
{
	return layout_has(access->layout, F_iseq_body) ? access_member(access, iseq, F_iseq_body) : iseq;
}

static int64_t read_line(struct access *access, uint64_t object, enum layout_member_id id)
{
	if (access->layout->members[id].size == SHORT_SIZE)
		return (int64_t)access_member(access, object, id);
	return access_signed(access, object, id);
}

/* Up to 2.4: iseq.c, iseq_location_setup(); in 1.9.3, prepare_iseq_build(). */
static void read_two_paths(struct access *access, struct code *code)
{
	uint64_t absolute = access_member(access, code->body, F_body_absolute_path);

	code->path = value_string(access, access_member(access, code->body, F_body_path));
	if (absolute != access_enum(access, E_RUBY_Qnil))
		code->absolute_path = value_string(access, absolute);
}

static void read_paths(struct access *access, uint64_t pathobj, struct code *code)
{
	uint64_t object = value_object(access, pathobj);
	uint64_t elements, count;

	/* rb_iseq_path, rb_iseq_realpath: a String stands for both. */
	if (value_type(access, object) == access_enum(access, E_RUBY_T_STRING)) {
		code->path = code->absolute_path = value_string(access, object);
		return;
	}
	count = value_array(access, object, &elements);
	if (count <= PATHOBJ_REALPATH) {
		access_fail(access, object);
		return;
	}
	code->path = value_string(access, access_word(access, elements + PATHOBJ_PATH * 8));
	object = access_word(access, elements + PATHOBJ_REALPATH * 8);
	if (object != access_enum(access, E_RUBY_Qnil))
		code->absolute_path = value_string(access, object);
}

/*
 * Whether jit_func is code. From 2.6 to 3.2 it may also be a state of MJIT; here is the last of these states (mjit.h,
 * enum rb_mjit_iseq_func, v2_6_0 to v3_1_7; enum rb_mjit_func_state, v3_2_0 to v3_2_11).
 */
static bool is_compiled(const struct layout *layout, uint64_t jit_func)
{
	const struct layout_number *failed = &layout->enumerators[E_MJIT_FUNC_FAILED];
	const struct layout_number *last =
	    failed->present ? failed : &layout->enumerators[E_NOT_COMPILED_JIT_ISEQ_FUNC];

	return jit_func > (last->present ? (uint64_t)last->value : 0);
}

bool code_read(struct access *access, uint64_t iseq, struct code *ret)
{
	const struct layout *layout = access->layout;

	*ret = (struct code){0};
	ret->iseq = value_object(access, iseq);
	if (!access->failed && !code_is_at(access, ret->iseq))
		access_fail(access, iseq);
	ret->body = code_body(access, ret->iseq);
	ret->type = access_member(access, ret->body, F_body_type);
	ret->encoded = access_member(access, ret->body, F_body_iseq_encoded);
	ret->size = access_member(access, ret->body, F_body_iseq_size);
	ret->parent = access_member(access, ret->body, F_body_parent_iseq);
	ret->local = access_member(access, ret->body, F_body_local_iseq);
	/* `local` is compared with iseqs that were read, which are at their new places. */
	if (ret->local == iseq)
		ret->local = ret->iseq;
	else if (value_is_object(ret->local))
		ret->local = value_object(access, ret->local);
	if (layout_has(layout, F_body_jit_entry))
		ret->compiled = is_compiled(layout, access_member(access, ret->body, F_body_jit_entry));
	if (layout_has(layout, F_body_builtin_attrs))
		ret->builtin_attrs = access_member(access, ret->body, F_body_builtin_attrs);
	if (layout_has(layout, F_body_klass))
		ret->klass = access_member(access, ret->body, F_body_klass);
	ret->first_line = read_line(access, ret->body, F_body_first_lineno);
	/*
	 * An int since v3_2_0; before, a VALUE or size_t that is a Fixnum, of which 1.9.3 keeps 16 bits (vm_core.h,
	 * rb_iseq_location_t; iseq.c, prepare_iseq_build). Only the size shows which it is.
	 */
	if (layout->members[F_body_first_lineno].size == 8 || layout->members[F_body_first_lineno].size == SHORT_SIZE)
		ret->first_line >>= 1;
	ret->label = value_string(access, access_member(access, ret->body, F_body_label));
	if (layout_has(layout, F_body_pathobj))
		read_paths(access, access_member(access, ret->body, F_body_pathobj), ret);
	else
		read_two_paths(access, ret);
	return !access->failed;
}

bool code_is_internal(struct access *access, const struct code *code)
{
	return value_bytes_begin(access, code->path, "<internal:");
}

bool code_has_pc(const struct code *code, uint64_t pc)
{
	return pc >= code->encoded && (pc - code->encoded) % 8 == 0 && (pc - code->encoded) / 8 <= code->size;
}

/* iseq.c, succ_index_lookup(): how many entries of the table begin at or before `position`. */
static uint64_t rank_of(struct access *access, uint64_t table, uint64_t position)
{
	const struct layout_member *imm_part = &access->layout->members[F_succ_imm_part];
	const struct layout_member *bits_member = &access->layout->members[F_succ_block_bits];
	uint64_t immediate = imm_part->size / 8 * IMMEDIATE_RANKS_A_WORD;
	uint64_t block, small_ranks, bits, at, word;

	if (position < immediate) {
		word = access_word(access, table + imm_part->offset + position / IMMEDIATE_RANKS_A_WORD * 8);
		return (word >> (position % IMMEDIATE_RANKS_A_WORD * IMMEDIATE_RANK_BITS)) &
		       ((1u << IMMEDIATE_RANK_BITS) - 1);
	}
	position -= immediate;
	block = access_address(access, table, F_succ_succ_part) +
		position / BLOCK_POSITIONS * access_sizeof(access, S_succ_block);
	at = position % BLOCK_POSITIONS;
	small_ranks = access_member(access, block, F_succ_block_small_block_ranks);
	bits = access_word(access, block + bits_member->offset + at / 64 * 8);
	word = access_member(access, block, F_succ_block_rank);
	if (at / 64 > 0)
		word += (small_ranks >> ((at / 64 - 1) * SMALL_RANK_BITS)) & ((1u << SMALL_RANK_BITS) - 1);
	return word + (uint64_t)__builtin_popcountll(bits << (63 - at % 64));
}

/*
 * The same for tables in which each entry has its position: iseq.c, get_insn_info_binary_search() of 2.5,
 * get_line_info() of 2.0 to 2.4. The first entry counts wherever it begins. In 1.9.3 each instruction has an entry
 * (compile.c, iseq_set_sequence()); there vm.c, rb_vm_get_sourceline() looks for the instruction before a pc, which
 * is the last entry before it.
 */
static uint64_t rank_by_position(struct access *access, uint64_t table, uint64_t entries, uint64_t position)
{
	uint64_t low = 1, high = entries;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (access_member(access, table + middle * access_sizeof(access, S_insn), F_insn_position) <= position)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t rank(struct access *access, const struct code *code, uint64_t entries, uint64_t position)
{
	if (layout_has(access->layout, F_insn_position))
		return rank_by_position(access, access_member(access, code->body, F_body_insns), entries, position);
	return rank_of(access, access_member(access, code->body, F_body_succ_index_table), position);
}

/* If positions have 16 bits, those of longer code are wrong: Ruby itself confuses them with others. */
static bool has_lines(const struct layout *layout, const struct code *code)
{
	return !layout_has(layout, F_insn_position) || layout->members[F_insn_position].size != SHORT_SIZE ||
	       code->size <= SHORT_WORDS;
}

/* code_read_lines() reads nothing if there are more entries, or more words of code. */
#define LINES_MAX 2048u

bool code_lines_hold(struct access *access, const struct code *code)
{
	uint64_t entries = access_member(access, code->body, F_body_insns_size);

	if (entries > code->size || code->size == 0)
		return false;
	if (!has_lines(access->layout, code))
		return true;
	return entries <= 1 || rank(access, code, entries, code->size - 1) == entries;
}

static void read_all(struct access *access, uint64_t address, uint64_t length)
{
	uint8_t bytes[512];

	for (uint64_t done = 0; done < length && !access->failed; done += sizeof(bytes))
		access_bytes(access, address + done, bytes,
			     length - done < sizeof(bytes) ? (size_t)(length - done) : sizeof(bytes));
}

void code_read_lines(const struct access *from, const struct code *code)
{
	struct access access = *from;
	const struct layout_member *imm_part = &access.layout->members[F_succ_imm_part];
	uint64_t entries = access_member(&access, code->body, F_body_insns_size), immediate, table;

	if (entries == 0 || entries > LINES_MAX || code->size > LINES_MAX || !has_lines(access.layout, code))
		return;
	code_line(&access, code, code->encoded);
	read_all(&access, access_member(&access, code->body, F_body_insns), entries * access_sizeof(&access, S_insn));
	if (layout_has(access.layout, F_insn_position))
		return;
	immediate = imm_part->size / 8 * IMMEDIATE_RANKS_A_WORD;
	table = access_member(&access, code->body, F_body_succ_index_table);
	read_all(&access, table + imm_part->offset, imm_part->size);
	if (code->size > immediate)
		read_all(&access, access_address(&access, table, F_succ_succ_part),
			 ((code->size - 1 - immediate) / BLOCK_POSITIONS + 1) * access_sizeof(&access, S_succ_block));
}

int64_t code_line(struct access *access, const struct code *code, uint64_t pc)
{
	uint64_t position = (pc - code->encoded) / 8;
	uint64_t entries = access_member(access, code->body, F_body_insns_size);
	uint64_t entry = 1;

	/* vm_backtrace.c, calc_lineno(): pc points at the next instruction, except at the start of a method. */
	if (position > 0)
		position--;
	if (entries == 0 || !has_lines(access->layout, code))
		return 0;
	if (entries > 1) {
		entry = rank(access, code, entries, position);
		if (entry < 1 || entry > entries)
			access_fail(access, code->body);
	}
	return read_line(access,
			 access_member(access, code->body, F_body_insns) + (entry - 1) * access_sizeof(access, S_insn),
			 F_insn_line_no);
}
