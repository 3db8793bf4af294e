#include "ruby/iseq_size.h"

#include "ruby/malloc_chunk.h"
#include "ruby/object_slot.h"

/* vm_core.h, VALUE, ID; iseq.h, iseq_bits_t (since 3.2): words of 8 bytes. insns_info has an unsigned int for each line. */
#define WORD_BYTES     8
#define WORD_BITS      64
#define POSITION_BYTES 4

/* Longer than the struct with its header. */
#define BODY_CHUNK_MAX 4096u

/* More than one piece of code has of anything. */
#define COUNT_MAX (UINT64_C(1) << 28)

/* A member that tells how many there are of something. */
static uint64_t count(struct access *access, uint64_t body, enum layout_member_id id)
{
	const uint64_t ret = layout_has(access->layout, id) ? access_member(access, body, id) : 0;

	if (ret > COUNT_MAX)
		access_fail(access, body);
	return access->failed ? 0 : ret;
}

static bool is_known(const struct layout *layout)
{
	static const enum layout_struct_id structs[] = {S_body,	     S_insn,	    S_is_entry,
							S_call_data, S_catch_entry, S_keyword};
	static const enum layout_member_id members[] = {
	    F_body_succ_index_table, F_body_opt_num, F_body_local_table_size, F_body_catch_table, F_catch_table_size,
	    F_catch_table_entries,   F_body_keyword, F_keyword_num,	      F_body_call_data};

	for (size_t i = 0; i < sizeof(structs) / sizeof(structs[0]); i++)
		if (!layout->sizes[structs[i]].present)
			return false;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (!layout_has(layout, members[i]))
			return false;
	return layout->enumerators[E_ISEQ_NOT_LOADED_YET].present &&
	       layout->enumerators[E_ISEQ_USE_COMPILE_DATA].present;
}

/*
 * The bytes of the struct itself, which is from calloc(). vm_core.h, rb_iseq_constant_body, v3_1_0 to v4_0_5 and head: a
 * Ruby without JIT compilers has no members for them. A layout of another build of the same release can have them. Then
 * the memory is shorter than the struct would be, and `exact` becomes false.
 */
static uint64_t body_bytes(const struct access *access, uint64_t body, bool *exact)
{
	const uint64_t bytes = access_sizeof(access, S_body);
	const uint64_t room = malloc_chunk_words(access, body, BODY_CHUNK_MAX) * WORD_BYTES;

	*exact = room == 0 || room >= bytes;
	return *exact ? bytes : room;
}

/* param_keyword_size */
static uint64_t keyword_bytes(struct access *access, uint64_t body)
{
	const uint64_t keyword = access_member(access, body, F_body_keyword);

	if (keyword == 0)
		return 0;
	return access_sizeof(access, S_keyword) +
	       (count(access, keyword, F_keyword_num) - count(access, keyword, F_keyword_required_num)) * WORD_BYTES;
}

/* iseq_catch_table_bytes */
static uint64_t catch_bytes(struct access *access, uint64_t body)
{
	const uint64_t table = access_member(access, body, F_body_catch_table);

	if (table == 0)
		return 0;
	return access->layout->members[F_catch_table_entries].offset +
	       count(access, table, F_catch_table_size) * access_sizeof(access, S_catch_entry);
}

/* Since 3.2, the caches of constants have the parts of the constant's path, which end with a 0. */
static uint64_t segment_bytes(struct access *access, uint64_t body, uint64_t before, uint64_t *steps)
{
	const uint64_t caches = access_member(access, body, F_body_is_entries),
		       size = access_sizeof(access, S_is_entry);
	const uint64_t last = before + count(access, body, F_body_ic_size);
	uint64_t words = 0;

	if (!layout_has(access->layout, F_constant_cache_segments) || caches == 0)
		return 0;
	for (uint64_t i = before; i < last && !access->failed; i++) {
		uint64_t segment = access_member(access, caches + i * size, F_constant_cache_segments);

		for (bool more = segment != 0; more; segment += WORD_BYTES) {
			if (*steps == 0)
				access_fail(access, segment);
			else
				(*steps)--;
			more = access_word(access, segment) != 0 && !access->failed;
			words++;
		}
	}
	return words * WORD_BYTES;
}

static uint64_t cache_bytes(struct access *access, uint64_t body, uint64_t *steps)
{
	uint64_t caches = count(access, body, F_body_ivc_size) + count(access, body, F_body_icvarc_size) +
			  count(access, body, F_body_ise_size);
	const uint64_t segments = segment_bytes(access, body, caches, steps);

	caches += count(access, body, F_body_ic_size) + count(access, body, F_body_is_size);
	return caches * access_sizeof(access, S_is_entry) + segments;
}

/* 2.7: calls with keywords are behind the others, and each has a list of these. */
static uint64_t keyword_call_bytes(struct access *access, uint64_t body, uint64_t *steps)
{
	const uint64_t calls = count(access, body, F_body_ci_kw_size), size = access_sizeof(access, S_kw_call_data);
	uint64_t at = access_member(access, body, F_body_call_data) +
		      count(access, body, F_body_ci_size) * access_sizeof(access, S_call_data);
	uint64_t ret = calls * size;

	if (calls > *steps)
		access_fail(access, body);
	for (uint64_t i = 0; i < calls && !access->failed; i++, at += size, (*steps)--) {
		const uint64_t list = access_member(access, at, F_kw_call_data_kw_arg);

		/* rb_call_info_kw_arg_bytes; the struct has room for one. */
		if (list != 0)
			ret += access_sizeof(access, S_kw_arg) +
			       (count(access, list, F_kw_arg_keyword_len) - 1) * WORD_BYTES;
	}
	return ret;
}

bool iseq_size(struct access *access, uint64_t iseq, uint64_t flags, uint64_t *steps, uint64_t *ret)
{
	const struct layout *layout = access->layout;
	const uint64_t body = layout_has(layout, F_iseq_body) ? access_member(access, iseq, F_iseq_body) : 0;
	uint64_t words;
	bool exact;

	if (!is_known(layout) || slot_has_flag(layout, flags, E_ISEQ_USE_COMPILE_DATA))
		return false;
	if (body == 0 || slot_has_flag(layout, flags, E_ISEQ_NOT_LOADED_YET))
		return true;
	words = count(access, body, F_body_iseq_size);
	*ret = body_bytes(access, body, &exact) + words * WORD_BYTES +
	       count(access, body, F_body_insns_size) * (access_sizeof(access, S_insn) + POSITION_BYTES) +
	       count(access, body, F_body_local_table_size) * WORD_BYTES + catch_bytes(access, body) +
	       (count(access, body, F_body_opt_num) + 1) * WORD_BYTES + keyword_bytes(access, body) +
	       cache_bytes(access, body, steps) +
	       count(access, body, F_body_ci_size) * access_sizeof(access, S_call_data);
	if (layout_has(layout, F_body_mark_bits))
		*ret += (words + WORD_BITS - 1) / WORD_BITS * WORD_BYTES;
	if (layout_has(layout, F_body_ci_kw_size)) {
		if (!layout_has(layout, F_kw_call_data_kw_arg) || !layout_has(layout, F_kw_arg_keyword_len))
			return false;
		*ret += keyword_call_bytes(access, body, steps);
	}
	return exact && !access->failed;
}
