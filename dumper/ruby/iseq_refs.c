#include "ruby/iseq_refs.h"

#include "ruby/value.h"

/* iseq.c, ISEQ_MBITS_BITLENGTH, v3_2_0 to v4_0_5 and head: one word of mark_bits is for so many words of code. */
#define WORD_BITS 64

static bool has(const struct refs_walk *walk, enum layout_member_id id)
{
	return layout_has(walk->refs->layout, id);
}

/* A member; 0 if this Ruby has none. */
static uint64_t member(struct refs_walk *walk, uint64_t at, enum layout_member_id id)
{
	return has(walk, id) ? access_member(walk->access, at, id) : 0;
}

static bool is_present(const struct refs_walk *walk, enum layout_enumerator_id id)
{
	return walk->refs->layout->enumerators[id].present;
}

static void give_code(const struct refs_walk *walk, uint64_t value)
{
	refs_give(walk, value, REF_CODE, 0, REF_EXACT);
}

/* Gives a member that is code, or an object in code. */
static void give_code_member(struct refs_walk *walk, uint64_t at, enum layout_member_id id)
{
	give_code(walk, member(walk, at, id));
}

/* The words of code where the bits are set. */
static bool scan_bits(struct refs_walk *walk, uint64_t bits, uint64_t first, uint64_t code, uint64_t size)
{
	for (uint64_t i = first; bits != 0 && !walk->access->failed; i++, bits >>= 1) {
		if (!(bits & 1))
			continue;
		if (i >= size || !refs_step(walk))
			return false;
		give_code(walk, access_word(walk->access, code + i * 8));
	}
	return true;
}

/* iseq.c, rb_iseq_mark_and_move_each_value: if the bits have room in one word, it is in the place of the pointer. */
static bool marked_words(struct refs_walk *walk, uint64_t body)
{
	struct access *access = walk->access;
	const uint64_t code = access_member(access, body, F_body_iseq_encoded);
	const uint64_t size = access_member(access, body, F_body_iseq_size);
	const uint64_t list = access_member(access, body, F_body_mark_bits);

	if (list == 0 || size <= WORD_BITS)
		return scan_bits(walk, list, 0, code, size);
	for (uint64_t i = 0; i < size && !access->failed; i += WORD_BITS)
		if (!refs_step(walk) || !scan_bits(walk, access_word(access, list + i / 8), i, code, size))
			return false;
	return true;
}

/* The class of a cache of a class variable. In the last releases of 4.0, the entry itself is an object. */
static void give_class_variable(struct refs_walk *walk, uint64_t cache)
{
	const uint64_t entry = member(walk, cache, F_cvar_cache_entry);

	if (is_present(walk, E_imemo_cvar_entry))
		give_code(walk, entry);
	else if (entry != 0)
		give_code_member(walk, entry, F_cvar_entry_klass);
}

static void give_once(struct refs_walk *walk, uint64_t cache)
{
	give_code_member(walk, cache, F_is_entry_once);
}

static void give_constant(struct refs_walk *walk, uint64_t cache)
{
	give_code_member(walk, cache, F_is_entry_constant);
}

/* The inline caches since 3.2. */
static bool caches_in_order(struct refs_walk *walk, uint64_t body)
{
	static const struct {
		enum layout_member_id count;
		void (*give)(struct refs_walk *walk, uint64_t cache);
	} kinds[] = {
	    {F_body_icvarc_size, give_class_variable},
	    {F_body_ise_size, give_once},
	    {F_body_ic_size, give_constant},
	};
	struct access *access = walk->access;
	const uint64_t size = access_sizeof(access, S_is_entry);
	uint64_t cache = access_member(access, body, F_body_is_entries);

	if (cache == 0)
		return true;
	cache += access_member(access, body, F_body_ivc_size) * size;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const uint64_t count = access_member(access, body, kinds[i].count);

		for (uint64_t n = 0; n < count && !access->failed; n++, cache += size) {
			if (!refs_step(walk))
				return false;
			kinds[i].give(walk, cache);
		}
	}
	return true;
}

/* Whether there is an imemo at an address; false if the address cannot be read. */
static bool is_imemo(const struct refs_walk *walk, uint64_t address, enum layout_enumerator_id type)
{
	struct access try = *walk->access;

	return value_is_imemo(&try, address, type) && !try.failed;
}

/*
 * An inline cache of 2.6 to 3.1, to which a word of code points. The only one after code is that of the instruction
 * `once` (insns.def). Since 3.0, Ruby marks what a cache of instance variables leads to, a rb_iv_index_tbl_entry; since
 * 3.0.1, also the imemo_constcache of a constant; and in 3.1 that of a class variable as if it were an instance
 * variable. In 3.0.0, the first word of a constant's cache is a number instead, so nothing can be read there.
 */
static void give_cache(struct refs_walk *walk, uint64_t before, uint64_t cache)
{
	struct access try = *walk->access;
	const uint64_t entry = member(walk, cache, F_is_entry_ivar);

	if (is_imemo(walk, before, E_imemo_iseq)) {
		give_once(walk, cache);
	} else if (is_imemo(walk, entry, E_imemo_constcache)) {
		give_code(walk, entry);
	} else if (entry != 0) {
		const uint64_t klass = access_member(&try, entry, F_iv_entry_klass);

		if (!try.failed)
			give_code(walk, klass);
	}
}

/* The words of code of 2.6 to 3.1. */
static bool words(struct refs_walk *walk, uint64_t body)
{
	struct access *access = walk->access;
	const uint64_t code = access_member(access, body, F_body_iseq_encoded);
	const uint64_t size = access_member(access, body, F_body_iseq_size);
	const uint64_t caches = access_member(access, body, F_body_is_entries);
	const uint64_t caches_size = access_member(access, body, F_body_is_size) * access_sizeof(access, S_is_entry);
	uint64_t word, before = 0;

	for (uint64_t i = 0; i < size && !access->failed; i++, before = word) {
		if (!refs_step(walk))
			return false;
		word = access_word(access, code + i * 8);
		if (word >= caches && word - caches < caches_size)
			give_cache(walk, before, word);
		else
			refs_give(walk, word, REF_CODE, 0, REF_CONSERVATIVE);
	}
	return true;
}

/*
 * Whether the collector marks a call cache of code.
 *   v3_3_0 to v3_3_11  iseq.c, cc_is_active: if it is valid
 *   v3_1_0 to v3_2_11  vm_callinfo.h, vm_cc_invalidated_p: the same
 *   v3_0_0 to v3_0_7   there, the condition is the wrong way round: only if it is not valid
 * Since 3.4, cc_is_active is always false, because it lacks one half of a comparison.
 */
static bool marks_call_cache(struct refs_walk *walk, uint64_t cache)
{
	struct access *access = walk->access;
	uint64_t cme;
	bool invalid;

	if (cache == 0 || walk->refs->layout->functions[P_rb_imemo_mark_and_move] ||
	    value_flags(access, cache) & access_enum(access, E_VM_CALLCACHE_UNMARKABLE) ||
	    !value_is_object(access_member(access, cache, F_call_cache_klass)))
		return false;
	cme = access_member(access, cache, F_call_cache_cme);
	invalid = value_flags(access, cme) & access_enum(access, E_METHOD_ENTRY_INVALIDATED);
	return has(walk, F_body_mandatory_only) ? !invalid : invalid;
}

/* 3.0+: what the code calls. */
static bool calls(struct refs_walk *walk, uint64_t body)
{
	struct access *access = walk->access;
	const uint64_t data = access_member(access, body, F_body_call_data);
	const uint64_t count = data != 0 ? access_member(access, body, F_body_ci_size) : 0;

	for (uint64_t i = 0; i < count && !access->failed; i++) {
		const uint64_t at = data + i * access_sizeof(access, S_call_data);
		const uint64_t cache = access_member(access, at, F_call_data_cc);

		if (!refs_step(walk))
			return false;
		give_code_member(walk, at, F_call_data_ci);
		if (marks_call_cache(walk, cache))
			give_code(walk, cache);
	}
	return true;
}

static bool calls_are_known(const struct refs_walk *walk)
{
	return !is_present(walk, E_imemo_callinfo) ||
	       (has(walk, F_body_call_data) && has(walk, F_body_ci_size) && has(walk, F_call_data_cc) &&
		has(walk, F_call_data_ci) && has(walk, F_call_cache_klass) && has(walk, F_call_cache_cme) &&
		is_present(walk, E_VM_CALLCACHE_UNMARKABLE) && is_present(walk, E_METHOD_ENTRY_INVALIDATED));
}

/* The constant default values of keyword arguments. */
static bool keywords(struct refs_walk *walk, uint64_t body)
{
	struct access *access = walk->access;
	uint64_t keyword, values, optional;

	if (!access_member(access, body, F_body_has_kw))
		return true;
	keyword = access_member(access, body, F_body_keyword);
	if (keyword == 0)
		return true;
	values = access_member(access, keyword, F_keyword_default_values);
	optional = (uint64_t)(access_signed(access, keyword, F_keyword_num) -
			      access_signed(access, keyword, F_keyword_required_num));
	if (values == 0 || optional > INT32_MAX)
		return values == 0;
	for (uint64_t i = 0; i < optional && !access->failed; i++) {
		if (!refs_step(walk))
			return false;
		give_code(walk, access_word(access, values + i * 8));
	}
	return true;
}

static bool catch_table(struct refs_walk *walk, uint64_t body)
{
	struct access *access = walk->access;
	const uint64_t table = access_member(access, body, F_body_catch_table);
	const uint64_t count = table != 0 ? access_member(access, table, F_catch_table_size) : 0;
	const uint64_t entries = access_address(access, table, F_catch_table_entries);

	for (uint64_t i = 0; i < count && !access->failed; i++) {
		if (!refs_step(walk))
			return false;
		give_code_member(walk, entries + i * access_sizeof(access, S_catch_entry), F_catch_entry_iseq);
	}
	return true;
}

static bool caches_are_known(const struct refs_walk *walk)
{
	if (!has(walk, F_body_is_entries) || !has(walk, F_is_entry_once))
		return false;
	if (has(walk, F_body_mark_bits))
		return has(walk, F_body_ivc_size) && has(walk, F_body_icvarc_size) && has(walk, F_body_ise_size) &&
		       has(walk, F_body_ic_size) && has(walk, F_cvar_cache_entry) && has(walk, F_cvar_entry_klass) &&
		       has(walk, F_is_entry_constant);
	return has(walk, F_body_is_size) && is_present(walk, E_ISEQ_MARKABLE_ISEQ) &&
	       has(walk, F_is_entry_ivar) == has(walk, F_iv_entry_klass);
}

/* What is in the instructions, and in the tables beside them. 2.6+. */
static bool contents(struct refs_walk *walk, uint64_t body)
{
	if (!caches_are_known(walk) || !calls_are_known(walk) || !has(walk, F_body_catch_table) ||
	    !has(walk, F_catch_table_size) || !has(walk, F_catch_table_entries) || !has(walk, F_catch_entry_iseq) ||
	    !has(walk, F_body_has_kw) || !has(walk, F_body_keyword) || !has(walk, F_keyword_default_values))
		return false;
	if (has(walk, F_body_mark_bits)) {
		if (!caches_in_order(walk, body) || !marked_words(walk, body))
			return false;
	} else if (slot_has_flag(walk->refs->layout, walk->flags, E_ISEQ_MARKABLE_ISEQ) && !words(walk, body)) {
		return false;
	}
	return (!is_present(walk, E_imemo_callinfo) || calls(walk, body)) && keywords(walk, body) &&
	       catch_table(walk, body);
}

/* Whether a just-in-time compiler has compiled the code. Then it marks objects, too. */
static bool is_compiled(struct refs_walk *walk, uint64_t body)
{
	return member(walk, body, F_body_mjit_unit) || member(walk, body, F_body_yjit_payload) ||
	       member(walk, body, F_body_rjit_blocks) || member(walk, body, F_body_zjit_payload);
}

static bool body_refs(struct refs_walk *walk, uint64_t body)
{
	refs_give_member(walk, body, F_body_label, "label");
	refs_give_member(walk, body, F_body_base_label, "base_label");
	refs_give_member(walk, body, F_body_pathobj, "pathobj");
	refs_give_member(walk, body, F_body_path, "path");
	refs_give_member(walk, body, F_body_absolute_path, "absolute_path");
	give_code_member(walk, body, F_body_parent_iseq);
	if (has(walk, F_body_mark_ary)) {
		refs_give_member(walk, body, F_body_mark_ary, "mark_ary");
		return has(walk, F_body_base_label);
	}
	refs_give_member(walk, body, F_body_coverage, "coverage");
	refs_give_member(walk, body, F_body_branches, "pc2branchindex");
	refs_give_member(walk, body, F_body_script_lines, "script_lines");
	give_code_member(walk, body, F_body_mandatory_only);
	if (walk->refs->layout->functions[P_rb_iseq_mark_and_move])
		give_code_member(walk, body, F_body_local_iseq);
	return has(walk, F_body_base_label) && has(walk, F_body_coverage) && contents(walk, body) &&
	       !is_compiled(walk, body);
}

bool hook_list_refs(struct refs_walk *walk, uint64_t list)
{
	struct access *access = walk->access;
	uint64_t hook = list != 0 ? access_member(access, list, F_hook_list_hooks) : 0;

	while (hook != 0 && !access->failed) {
		if (!refs_step(walk))
			return false;
		refs_give_member(walk, hook, F_hook_data, "hook");
		hook = access_member(access, hook, F_hook_next);
	}
	return true;
}

/*
 * The last words of an rb_iseq_t: what the code is read from, what the compiler needs, or the TracePoints. Returns
 * whether all references there are known.
 */
static bool last_words_refs(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;

	if (slot_has_flag(layout, walk->flags, E_ISEQ_NOT_LOADED_YET)) {
		refs_give(walk, slot_member(layout, walk->slot, F_iseq_loader), REF_PART, (uintptr_t) "loader",
			  REF_EXACT);
		return has(walk, F_iseq_loader);
	}
	/* iseq.h, ISEQ_COMPILE_DATA, v2_3_0 to v2_4_10: a pointer that can be NULL. */
	if (!is_present(walk, E_ISEQ_USE_COMPILE_DATA))
		return has(walk, F_iseq_compile_data) && slot_member(layout, walk->slot, F_iseq_compile_data) == 0;
	if (slot_has_flag(layout, walk->flags, E_ISEQ_USE_COMPILE_DATA))
		return false;
	return hook_list_refs(walk, slot_member(layout, walk->slot, F_iseq_hooks));
}

bool iseq_refs(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;
	const uint64_t body = slot_member(layout, walk->slot, F_iseq_body);
	bool all;

	if (!has(walk, F_iseq_body))
		return false;
	refs_give(walk, slot_member(layout, walk->slot, F_iseq_wrapper), REF_PART, (uintptr_t) "wrapper", REF_EXACT);
	all = body == 0 || body_refs(walk, body);
	return last_words_refs(walk) && all && !walk->access->failed;
}
