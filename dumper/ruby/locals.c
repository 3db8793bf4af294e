#include "ruby/locals.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "ruby/code.h"
#include "ruby/environment.h"
#include "ruby/symbol.h"

/* How many enclosing environments are followed. */
#define NESTING_MAX 256

/* The most bytes of the name of a variable. */
#define NAME_BYTES 1000u

/* id.h and symbol.h, ID_SCOPE_MASK, v2_4_0 to v4_0_5 and head. A local variable has none of these bits. */
#define ID_SCOPE_MASK 0x0eu

/*
 * vm_core.h, VM_FRAME_FLAG_MODIFIED_BLOCK_PARAM, v2_5_0 to v4_0_5 and head: the block parameter has its value. Before 2.5,
 * it has it from the beginning.
 */
#define MODIFIED_BLOCK_PARAM UINT64_C(0x0200)

/* One environment, and the code whose variables are in it. */
struct level {
	uint64_t ep, flags, specval;
	uint64_t body; /* of the code */
	uint64_t ids, count;
	bool local; /* there is no enclosing environment */
	size_t depth;
};

static bool has_members(const struct layout *layout)
{
	/* Up to 2.3, environments have other words behind the variables. */
	return !layout_has(layout, F_cfp_flag) && layout->enumerators[E_VM_ENV_FLAG_LOCAL].present &&
	       layout_has(layout, F_body_local_table) && layout_has(layout, F_body_local_table_size);
}

static uint64_t env_word(struct access *access, uint64_t ep, int index)
{
	return access_word(access, ep + (uint64_t)(int64_t)(index * 8));
}

/* While an environment is being moved to the heap, its flags are overwritten with its object (vm.c, vm_make_env_each). */
static uint64_t settle_ep(struct access *access, uint64_t ep, uint64_t *flags)
{
	*flags = env_word(access, ep, ENVIRONMENT_FLAGS);
	if (access->failed || environment_has_flags(*flags))
		return ep;
	if (!layout_has(access->layout, F_env_ep) || !value_is_imemo(access, *flags, E_imemo_env)) {
		access_fail(access, ep);
		return 0;
	}
	ep = access_member(access, *flags, F_env_ep);
	*flags = env_word(access, ep, ENVIRONMENT_FLAGS);
	if (!environment_has_flags(*flags))
		access_fail(access, ep);
	return ep;
}

uint64_t locals_ep(const struct ruby *ruby, const struct frame *frame)
{
	struct access access = ruby_access(ruby);
	const enum memory_kind before = memory_reads(ruby->memory, MEMORY_CHANGES);
	uint64_t flags, ep = 0;

	if (has_members(ruby->layout))
		ep = settle_ep(&access, access_member(&access, frame->cfp, F_cfp_ep), &flags);
	memory_reads(ruby->memory, before);
	return access.failed ? 0 : ep;
}

/* Whether an environment on the heap is that of the code (vm.c, vm_env_new). */
static bool is_env_of(struct access *access, const struct level *level, uint64_t iseq)
{
	const struct layout_number *escaped = &access->layout->enumerators[E_VM_ENV_FLAG_ESCAPED];
	uint64_t env, of;

	if (!escaped->present || !(level->flags & (uint64_t)escaped->value) || !layout_has(access->layout, F_env_iseq))
		return true;
	env = env_word(access, level->ep, ENVIRONMENT_ENV);
	if (access->failed || !value_is_imemo(access, env, E_imemo_env))
		return false;
	of = access_member(access, env, F_env_iseq);
	return value_is_object(of) && value_object(access, of) == iseq && !access->failed;
}

/* Reads an environment, and the code's table of variables. False if it cannot be read. */
static bool read_level(const struct ruby *ruby, uint64_t ep, uint64_t iseq, struct level *ret)
{
	struct access access = ruby_access(ruby);
	enum memory_kind before = memory_reads(ruby->memory, MEMORY_LASTS);
	bool is_own = false;

	iseq = value_object(&access, iseq);
	ret->body = code_is_at(&access, iseq) ? code_body(&access, iseq) : 0;
	if (ret->body != 0) {
		ret->ids = access_member(&access, ret->body, F_body_local_table);
		ret->count = access_member(&access, ret->body, F_body_local_table_size);
	}
	memory_reads(ruby->memory, MEMORY_CHANGES);
	if (ret->body != 0 && !access.failed) {
		ret->ep = settle_ep(&access, ep, &ret->flags);
		ret->specval = env_word(&access, ret->ep, ENVIRONMENT_SPECVAL);
		ret->local = ret->flags & access_enum(&access, E_VM_ENV_FLAG_LOCAL);
		is_own = !access.failed && is_env_of(&access, ret, iseq);
	}
	memory_reads(ruby->memory, before);
	return is_own && !access.failed;
}

/* Whether a name is that of a local variable, or of an argument without a name. */
static bool is_name(const struct text *name)
{
	static const char *const nameless[] = {"*", "**", "&", "..."};
	const char *c = name->data;

	for (size_t i = 0; c && i < sizeof(nameless) / sizeof(nameless[0]); i++)
		if (strcmp(c, nameless[i]) == 0)
			return true;
	if (!c || (!islower((unsigned char)*c) && *c != '_' && (unsigned char)*c < 0x80))
		return false;
	while (isalnum((unsigned char)*c) || *c == '_' || (unsigned char)*c >= 0x80)
		c++;
	return *c == '\0';
}

/* Whether a name was not found because memory could not be read: IDs that Ruby itself uses have no name. */
static bool lacks_memory(const struct access *access)
{
	uint64_t word;

	return access->failed && value_is_object(access->address) &&
	       !memory_read(access->memory, access->address, &word, sizeof(word));
}

/*
 * Whether an ID is that of a local variable, or an operator, which stands for an argument without a name. Others are of
 * variables that Ruby itself uses (parse.y, internal_id).
 */
static bool is_local_id(const struct access *access, uint64_t id)
{
	return id <= access_enum(access, E_tLAST_OP_ID) || (id & ID_SCOPE_MASK) == 0;
}

/* The name of the variable `index`. False if it has none, or (*lacks) if it cannot be read. */
static bool read_name(const struct ruby *ruby, const struct level *level, uint64_t index, struct text *name,
		      bool *lacks)
{
	const enum memory_kind before = memory_reads(ruby->memory, MEMORY_LASTS);
	struct access access = ruby_access(ruby);
	const uint64_t id = access_word(&access, level->ids + index * 8);
	const bool read = id != 0 && is_local_id(&access, id) && symbol_add(ruby, &access, id, name) && is_name(name);

	*lacks |= lacks_memory(&access);
	text_shorten(name, 0, NAME_BYTES);
	memory_reads(ruby->memory, before);
	return read;
}

static bool has_name(const struct locals *locals, const char *name)
{
	for (size_t i = 0; i < locals->count; i++)
		if (strcmp(locals->of[i].name, name) == 0)
			return true;
	return false;
}

/* Bits of param.flags, by their distance from has_kw (vm_core.h, rb_iseq_constant_body, v2_4_0 to v4_0_5 and head). */
enum param_flag { HAS_LEAD = -4, HAS_REST = -2, HAS_POST = -1, HAS_KW = 0, HAS_KWREST = 1, HAS_BLOCK = 2 };

static uint64_t param_flag(uint64_t byte, unsigned int shift, enum param_flag flag)
{
	return byte >> ((int)shift + (int)flag) & 1;
}

/*
 * Where the block parameter of a method can be, at the earliest: it is the last parameter, so all others are before it.
 * Returns the number of variables if there is none.
 */
static uint64_t first_maybe_block(struct access *access, const struct level *level)
{
	const struct layout_member *has_kw = &access->layout->members[F_body_has_kw];
	uint64_t byte, least;

	if (!has_kw->present || has_kw->width == 0 || has_kw->shift + HAS_BLOCK >= 8 || has_kw->shift + HAS_LEAD < 0)
		return 0;
	byte = access_word(access, access_address(access, level->body, F_body_has_kw)) & 0xff;
	if (!param_flag(byte, has_kw->shift, HAS_BLOCK))
		return level->count;
	least = param_flag(byte, has_kw->shift, HAS_LEAD) + param_flag(byte, has_kw->shift, HAS_REST) +
		param_flag(byte, has_kw->shift, HAS_POST) + param_flag(byte, has_kw->shift, HAS_KWREST);
	if (layout_has(access->layout, F_body_opt_num))
		least += access_member(access, level->body, F_body_opt_num);
	if (param_flag(byte, has_kw->shift, HAS_KW) && layout_has(access->layout, F_body_keyword) &&
	    layout_has(access->layout, F_keyword_num))
		least += access_member(access, access_member(access, level->body, F_body_keyword), F_keyword_num);
	return access->failed ? 0 : least;
}

/*
 * From which variable on one may be a block parameter that was not used yet. Ruby makes the Proc when the parameter is first
 * used; until then, its slot has what was there before (vm_args.c, setup_parameters_complex; insns.def, getblockparam; since
 * v2_5_0). A block, and a method made of one, has the Proc from the beginning.
 */
static uint64_t maybe_block_from(const struct ruby *ruby, const struct level *level)
{
	const enum memory_kind before = memory_reads(ruby->memory, MEMORY_LASTS);
	struct access access = ruby_access(ruby);
	/* Ruby has had that as long as threads have execution contexts. */
	const bool lazy = layout_has(ruby->layout, F_thread_ec) && level->local &&
			  !(level->flags & MODIFIED_BLOCK_PARAM) &&
			  (level->flags & access_enum(&access, E_VM_FRAME_MAGIC_MASK)) ==
			      access_enum(&access, E_VM_FRAME_MAGIC_METHOD);
	const uint64_t first = lazy ? first_maybe_block(&access, level) : level->count;

	memory_reads(ruby->memory, before);
	return first;
}

static void read_value(const struct ruby *ruby, const struct level *level, uint64_t index, struct local *ret)
{
	const enum memory_kind before = memory_reads(ruby->memory, MEMORY_CHANGES);
	struct access access = ruby_access(ruby);

	ret->value = access_word(&access, level->ep - ENVIRONMENT_BEFORE - (level->count - index) * 8);
	ret->readable = !access.failed;
	memory_reads(ruby->memory, before);
}

/*
 * Whether a variable is shown. Up to 3.3, "..." only marks that there are "*", "**" and "&", and is nil. Since 3.4, it has
 * how the method was called (compile.c, iseq_compile_each0; iseq.h, forwardable; v3_4_0).
 */
static bool is_shown(const struct ruby *ruby, struct local *local)
{
	local->is_value = strcmp(local->name, "...") != 0;
	return local->is_value || local->value != (uint64_t)ruby->layout->enumerators[E_RUBY_Qnil].value;
}

/* Adds the variables of an environment. False if there is not enough memory. */
static bool add_level(const struct ruby *ruby, const struct level *level, bool in_registers, struct locals *ret)
{
	const uint64_t block_from = maybe_block_from(ruby, level);

	for (uint64_t i = 0; i < level->count; i++) {
		struct local local = {.depth = level->depth, .ep = level->ep, .in_register = in_registers};
		struct text name = {0};
		const bool named = read_name(ruby, level, i, &name, &ret->unnamed) && !has_name(ret, name.data);

		if (name.failed || (named && !array_make_room(ret->of, ret->capacity, ret->count + 1))) {
			text_clear(&name);
			return false;
		}
		ret->cut |= ret->count >= LOCALS_MAX || i >= LOCALS_MAX || memory_is_over(ruby->memory);
		if (!named || ret->cut) {
			text_clear(&name);
			if (ret->cut)
				return true;
			continue;
		}
		local.name = name.data;
		read_value(ruby, level, i, &local);
		local.maybe_block = i >= block_from;
		if (is_shown(ruby, &local))
			ret->of[ret->count++] = local;
		else
			text_clear(&name);
	}
	return true;
}

bool locals_read(const struct ruby *ruby, const struct frame *frame, bool in_registers, struct locals *ret)
{
	const enum memory_kind before = memory_reads(ruby->memory, MEMORY_CHANGES);
	struct access access = ruby_access(ruby);
	uint64_t ep = access_member(&access, frame->cfp, F_cfp_ep), iseq = frame->iseq;
	bool enough = true;

	*ret = (struct locals){.known = has_members(ruby->layout), .broken = access.failed};
	for (size_t depth = 0; ret->known && enough && !ret->broken && !ret->cut && iseq != 0; depth++) {
		struct level level = {.depth = depth};

		if (depth >= NESTING_MAX || !read_level(ruby, ep, iseq, &level)) {
			ret->broken = true;
			break;
		}
		if (depth == 0)
			ret->ep = level.ep;
		enough = add_level(ruby, &level, in_registers && depth == 0, ret);
		if (level.local)
			break;
		memory_reads(ruby->memory, MEMORY_LASTS);
		iseq = access_member(&access, level.body, F_body_parent_iseq);
		memory_reads(ruby->memory, MEMORY_CHANGES);
		ret->broken = access.failed;
		ep = environment_previous(level.specval);
	}
	memory_reads(ruby->memory, before);
	return enough;
}

void locals_clear(struct locals *locals)
{
	for (size_t i = 0; i < locals->count; i++)
		free(locals->of[i].name);
	free(locals->of);
	*locals = (struct locals){0};
}
