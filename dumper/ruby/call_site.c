#include "ruby/call_site.h"

#include "ruby/value.h"

/* vm_callinfo.h, v3_0_0 to v4.0.5 and head: CI_EMBED_TAG_bits, _FLAG_SHFT, _ID_SHFT, for words of 64 bits. */
#define PACKED_TAG	  UINT64_C(1)
#define PACKED_FLAG_SHIFT 16
#define PACKED_ID_SHIFT	  32

/* The most calls of one method that are checked. */
#define CALLS_MAX 4096u

/* What one send says. */
struct site {
	uint64_t name;	 /* an ID */
	uint64_t method; /* the method entry found last */
	bool no_code;	 /* it has an operand for a block's code, which is 0: an object may be given as a block */
};

/* Reads the call data at an address. Fails the read if there is none. */
static struct site read_call_data(struct access *access, uint64_t address)
{
	const struct layout *layout = access->layout;
	struct site site = {0};
	uint64_t info, cache;

	if (!value_is_object(address)) {
		access_fail(access, address);
	} else if (layout_has(layout, F_call_data_ci_mid)) {
		site.name = access_member(access, address, F_call_data_ci_mid);
		site.method = access_member(access, address, F_call_data_cc_me);
	} else {
		info = access_member(access, address, F_call_data_ci);
		cache = access_member(access, address, F_call_data_cc);
		if (info & PACKED_TAG)
			site.name = info >> PACKED_ID_SHIFT;
		else if (value_is_imemo(access, info, E_imemo_callinfo))
			site.name = access_member(access, info, F_call_info_mid);
		if (value_is_imemo(access, cache, E_imemo_callcache))
			site.method = access_member(access, cache, F_call_cache_cme);
	}
	if (!value_is_imemo(access, site.method, E_imemo_ment) || site.name == 0)
		access_fail(access, address);
	return site;
}

/*
 * Reads the send before a pc. Call data is the last operand, or the one before it if the last operand is a block's code
 * or 0. Fails the read if the instruction is not a send.
 */
static struct site read_site(const struct access *from, uint64_t pc, struct access *access)
{
	uint64_t last, previous;
	struct site site;

	*access = *from;
	last = access_word(access, pc - 8);
	previous = access_word(access, pc - 16);
	if (last != 0 && !value_is_imemo(access, last, E_imemo_iseq))
		return read_call_data(access, last);
	site = read_call_data(access, previous);
	site.no_code = last == 0;
	return site;
}

/* The flags of a call (enum vm_call_flag_bits). */
static uint64_t read_flags(struct access *access, uint64_t call_data)
{
	uint64_t info;

	if (layout_has(access->layout, F_call_data_ci_flag))
		return access_member(access, call_data, F_call_data_ci_flag);
	info = access_member(access, call_data, F_call_data_ci);
	return info & PACKED_TAG ? info >> PACKED_FLAG_SHIFT : access_member(access, info, F_call_info_flag);
}

/*
 * Whether code may replace its own frame by that of another method (a tail call). If so, nothing tells which frame its
 * caller has above it. True if that cannot be read. In 2.7, calls with keywords are in a struct of their own.
 */
static bool may_tail_call(const struct access *from, uint64_t iseq)
{
	struct access access = *from;
	uint64_t body = access_member(&access, iseq, F_iseq_body);
	uint64_t call_data = access_member(&access, body, F_body_call_data);
	uint64_t count = access_member(&access, body, F_body_ci_size);
	bool found =
	    layout_has(access.layout, F_body_ci_kw_size) && access_member(&access, body, F_body_ci_kw_size) > 0;

	for (uint64_t i = 0; !found && !access.failed && i < count && i < CALLS_MAX; i++)
		found = (read_flags(&access, call_data + i * access_sizeof(&access, S_call_data)) >>
			 access_enum(&access, E_VM_CALL_TAILCALL_bit)) &
			1;
	return found || access.failed || count > CALLS_MAX;
}

/*
 * Whether a method may be called by another name than its own. This matters for recursion: the call data of a caller
 * further down has what the newest execution of the same call has found, not what that caller itself has found.
 */
static bool has_other_names(struct access *access, uint64_t method, uint64_t definition)
{
	const struct layout *layout = access->layout;

	if (layout->enumerators[E_idMethodMissing].present &&
	    access_member(access, method, F_ment_called_id) == access_enum(access, E_idMethodMissing))
		return true;
	if (layout_has(layout, F_mdef_alias_count))
		return access_member(access, definition, F_mdef_alias_count) > 0;
	return !layout_has(layout, F_mdef_reference_count) ||
	       access_member(access, definition, F_mdef_reference_count) > 1;
}

static bool has_facts(const struct layout *layout)
{
	if (!layout->enumerators[E_VM_FRAME_FLAG_FINISH].present || !layout->enumerators[E_tLAST_OP_ID].present ||
	    !layout_has(layout, F_ment_called_id) || !layout_has(layout, F_mdef_iseq) ||
	    !layout_has(layout, F_body_call_data) || !layout_has(layout, F_body_ci_size) ||
	    !layout->enumerators[E_VM_CALL_TAILCALL_bit].present)
		return false;
	if (layout_has(layout, F_call_data_ci_mid))
		return layout_has(layout, F_call_data_ci_flag) && layout_has(layout, F_call_data_cc_me);
	return layout_has(layout, F_call_data_ci) && layout_has(layout, F_call_data_cc) &&
	       layout_has(layout, F_call_info_mid) && layout_has(layout, F_call_info_flag) &&
	       layout_has(layout, F_call_cache_cme) && layout->enumerators[E_imemo_callinfo].present &&
	       layout->enumerators[E_imemo_callcache].present;
}

/* Whether a frame of Ruby code has not run any of it. */
static bool is_at_start(const struct access *from, const struct frame *frame)
{
	struct access access = *from;
	uint64_t body = access_member(&access, value_object(&access, frame->iseq), F_iseq_body);
	uint64_t start = access_member(&access, body, F_body_iseq_encoded);

	return access.failed || frame->pc == start;
}

/*
 * Whether a frame may have been called by C code that runs for the send itself, without a frame of its own. An
 * instruction for an operator (opt_aref, opt_plus, opt_eq, …) calls hash, eql?, to_ary, coerce; to_proc is called on an
 * object that is given as a block. No flag shows that for a C function, or for Ruby code that has not run yet.
 */
static bool may_be_called_for(const struct ruby *ruby, const struct site *site, const struct frame *callee)
{
	struct access access = ruby_access(ruby);

	if (callee->finish)
		return true;
	if (site->name > access_enum(&access, E_tLAST_OP_ID) && !site->no_code)
		return false;
	return callee->kind != FRAME_RUBY || is_at_start(&access, callee);
}

/*
 * Whether a frame can be directly above that of a C function: a C function runs Ruby code by a vm_exec() of its own,
 * and the first frame of that has a flag. A frame that has not run yet may get the flag later (vm_eval.c,
 * vm_call0_body; vm.c, invoke_bmethod).
 */
static enum call_site_verdict judge_called_from_c(const struct ruby *ruby, const struct frame *callee)
{
	struct access access = ruby_access(ruby);

	if (!ruby->layout->enumerators[E_VM_FRAME_FLAG_FINISH].present || callee->kind != FRAME_RUBY)
		return CALL_SITE_UNDECIDED;
	if (callee->finish)
		return CALL_SITE_AGREES;
	return is_at_start(&access, callee) ? CALL_SITE_UNDECIDED : CALL_SITE_CONTRADICTS;
}

enum call_site_verdict call_site_judge(const struct ruby *ruby, const struct frame *caller, const struct frame *callee)
{
	struct access access, from = ruby_access(ruby);
	uint64_t found, definition, type, original;
	struct site site;

	if (caller->kind == FRAME_CFUNC)
		return judge_called_from_c(ruby, callee);
	if (!has_facts(ruby->layout) || caller->kind != FRAME_RUBY || !callee->own_method || callee->method == 0 ||
	    caller->pc < 16)
		return CALL_SITE_UNDECIDED;
	site = read_site(&from, caller->pc, &access);
	found = access_member(&access, site.method, F_ment_def);
	type = access_member(&access, found, F_mdef_type);
	if (access.failed ||
	    (type != access_enum(&access, E_VM_METHOD_TYPE_ISEQ) &&
	     type != access_enum(&access, E_VM_METHOD_TYPE_CFUNC)) ||
	    access_member(&access, site.method, F_ment_called_id) != site.name)
		return CALL_SITE_UNDECIDED;
	definition = access_member(&access, callee->method, F_ment_def);
	original = access_member(&access, definition, F_mdef_original_id);
	if (access_member(&access, callee->method, F_ment_called_id) == site.name || original == site.name)
		return CALL_SITE_AGREES;
	if (may_be_called_for(ruby, &site, callee) || has_other_names(&access, callee->method, definition) ||
	    access.failed ||
	    (type == access_enum(&access, E_VM_METHOD_TYPE_ISEQ) &&
	     may_tail_call(&from, access_member(&access, found, F_mdef_iseq))))
		return CALL_SITE_UNDECIDED;
	return access.failed ? CALL_SITE_UNDECIDED : CALL_SITE_CONTRADICTS;
}
