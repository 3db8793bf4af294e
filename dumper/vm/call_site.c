#include "vm/call_site.h"

#include "decode/value.h"

/* vm_callinfo.h: CI_EMBED_TAG_bits, CI_EMBED_ID_SHFT, macros in every Ruby since 3.0, for words of 64 bits. */
#define PACKED_TAG	UINT64_C(1)
#define PACKED_ID_SHIFT 32

/* What one send says. */
struct site {
	uint64_t name;	 /* an ID */
	uint64_t method; /* the method entry found last */
};

/* Whether call data lies at an address, and what it says. Fails the read if not. */
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
 * The send before a pc. Call data is the last operand, or the last but one before a block's code or none. Fails the
 * read if the instruction is no send.
 */
static struct site read_site(const struct access *from, uint64_t pc, struct access *access)
{
	uint64_t last, previous;
	struct site site;

	*access = *from;
	last = access_word(access, pc - 8);
	previous = access_word(access, pc - 16);
	if (last == 0 || value_is_imemo(access, last, E_imemo_iseq))
		return read_call_data(access, previous);
	site = read_call_data(access, last);
	return site;
}

static bool has_facts(const struct layout *layout)
{
	if (!layout_has(layout, F_ment_called_id))
		return false;
	if (layout_has(layout, F_call_data_ci_mid))
		return layout_has(layout, F_call_data_cc_me);
	return layout_has(layout, F_call_data_ci) && layout_has(layout, F_call_data_cc) &&
	       layout_has(layout, F_call_info_mid) && layout_has(layout, F_call_cache_cme) &&
	       layout->enumerators[E_imemo_callinfo].present && layout->enumerators[E_imemo_callcache].present;
}

enum call_site_verdict call_site_judge(const struct ruby *ruby, const struct frame *caller, const struct frame *callee)
{
	struct access access, from = ruby_access(ruby);
	uint64_t definition, type, original;
	struct site site;

	if (!has_facts(ruby->layout) || caller->kind != FRAME_RUBY || !callee->own_method || callee->method == 0 ||
	    caller->pc < 16)
		return CALL_SITE_UNDECIDED;
	site = read_site(&from, caller->pc, &access);
	definition = access_member(&access, site.method, F_ment_def);
	type = access_member(&access, definition, F_mdef_type);
	if (access.failed ||
	    (type != access_enum(&access, E_VM_METHOD_TYPE_ISEQ) &&
	     type != access_enum(&access, E_VM_METHOD_TYPE_CFUNC)) ||
	    access_member(&access, site.method, F_ment_called_id) != site.name)
		return CALL_SITE_UNDECIDED;
	definition = access_member(&access, callee->method, F_ment_def);
	original = access_member(&access, definition, F_mdef_original_id);
	if (access_member(&access, callee->method, F_ment_called_id) == site.name || original == site.name)
		return CALL_SITE_AGREES;
	return access.failed ? CALL_SITE_UNDECIDED : CALL_SITE_CONTRADICTS;
}
