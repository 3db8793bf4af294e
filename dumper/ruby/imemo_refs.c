#include "ruby/imemo_refs.h"

#include "ruby/environment.h"
#include "ruby/iseq_refs.h"
#include "ruby/st.h"
#include "ruby/value.h"

static bool has(const struct refs_walk *walk, enum layout_member_id id)
{
	return layout_has(walk->refs->layout, id);
}

static bool is(const struct refs_walk *walk, uint64_t number, enum layout_enumerator_id id)
{
	const struct layout_number *enumerator = &walk->refs->layout->enumerators[id];

	return enumerator->present && (uint64_t)enumerator->value == number;
}

/* A member that is in the object's slot. */
static uint64_t own(const struct refs_walk *walk, enum layout_member_id id)
{
	return slot_member(walk->refs->layout, walk->slot, id);
}

static void give(const struct refs_walk *walk, uint64_t value, const char *name, enum ref_certainty certainty)
{
	refs_give(walk, value, REF_PART, (uintptr_t)name, certainty);
}

static void give_own(const struct refs_walk *walk, enum layout_member_id id, const char *name)
{
	give(walk, own(walk, id), name, REF_EXACT);
}

/* Gives the words of some memory that are addresses of objects. */
static bool give_words(struct refs_walk *walk, uint64_t at, uint64_t count, const char *name)
{
	for (uint64_t i = 0; i < count && !walk->access->failed; i++) {
		if (!refs_step(walk))
			return false;
		give(walk, access_word(walk->access, at + i * 8), name, REF_CONSERVATIVE);
	}
	return true;
}

/*
 * imemo.c, imemo_env, v4_0_0 to v4_0_5 and head: in code of a file or class, there is a box (Ruby::Box) in the place of
 * the block.
 */
static void give_box(struct refs_walk *walk, uint64_t flags, uint64_t specval)
{
	const uint64_t kind = flags & access_enum(walk->access, E_VM_FRAME_MAGIC_MASK);
	const uint64_t box = environment_previous(specval);

	if (!has(walk, F_box_object) || !has(walk, F_box_is_user) || box == 0 ||
	    (kind != access_enum(walk->access, E_VM_FRAME_MAGIC_CLASS) &&
	     kind != access_enum(walk->access, E_VM_FRAME_MAGIC_TOP)))
		return;
	if (access_member(walk->access, box, F_box_is_user))
		refs_give_member(walk, box, F_box_object, "box");
}

/* The enclosing environment: vm.c, rb_vm_env_prev_env, v2_4_0 to v4_0_5 and head. */
static void give_enclosing(struct refs_walk *walk, uint64_t ep)
{
	struct access *access = walk->access;
	const uint64_t flags = access_word(access, ep + (uint64_t)(ENVIRONMENT_FLAGS * 8));
	const uint64_t specval = access_word(access, ep + (uint64_t)(ENVIRONMENT_SPECVAL * INT64_C(8)));

	if (access->failed)
		return;
	if (flags & access_enum(access, E_VM_ENV_FLAG_LOCAL))
		give_box(walk, flags, specval);
	else
		give(walk, access_word(access, environment_previous(specval) + ENVIRONMENT_ENV * 8UL), "previous",
		     REF_EXACT);
}

static bool env_refs(struct refs_walk *walk)
{
	const uint64_t ep = own(walk, F_env_ep), values = own(walk, F_env_values), size = own(walk, F_env_size);

	if (!has(walk, F_env_ep) || !has(walk, F_env_values) || !has(walk, F_env_size) ||
	    !walk->refs->layout->enumerators[E_VM_ENV_FLAG_LOCAL].present)
		return false;
	/* So it is while it is being made. */
	if (ep == 0)
		return true;
	for (uint64_t i = 0; i < size && !walk->access->failed; i++) {
		if (!refs_step(walk))
			return false;
		refs_give(walk, access_word(walk->access, values + i * 8), REF_VARIABLE, i, REF_EXACT);
	}
	give_own(walk, F_env_iseq, "iseq");
	give_enclosing(walk, ep);
	return true;
}

static bool cref_refs(struct refs_walk *walk)
{
	give_own(walk, F_cref_klass, "klass");
	give_own(walk, F_cref_next, "next");
	give_own(walk, F_cref_refinements, "refinements");
	return has(walk, F_cref_klass);
}

static bool svar_refs(struct refs_walk *walk)
{
	give_own(walk, F_svar_cref_or_me, "cref_or_me");
	give_own(walk, F_svar_lastline, "lastline");
	give_own(walk, F_svar_backref, "backref");
	give_own(walk, F_svar_others, "others");
	return has(walk, F_svar_others);
}

static bool throw_data_refs(struct refs_walk *walk)
{
	give_own(walk, F_throw_data_object, "throw_obj");
	return has(walk, F_throw_data_object);
}

static bool ifunc_refs(struct refs_walk *walk)
{
	give(walk, own(walk, F_ifunc_data), "data", REF_CONSERVATIVE);
	return has(walk, F_ifunc_data);
}

/*
 * node.c, rb_ast_mark, v2_5_0 to v3_3_11: a syntax tree marks objects in its nodes, which are not known, until it was
 * compiled. After that, v2_7_0 to v3_2_11 mark two other members, and other releases mark nothing. v2_7_0 is the first
 * in which objects can be moved.
 */
static bool ast_refs(struct refs_walk *walk)
{
	if (has(walk, F_moved_destination) && !walk->refs->layout->functions[P_rb_iseq_mark_and_move]) {
		give_own(walk, F_ast_compile_option, "compile_option");
		give_own(walk, F_ast_script_lines, "script_lines");
	}
	return has(walk, F_ast_nodes) && own(walk, F_ast_nodes) == 0;
}

/* imemo.c, imemo_memo, head: a flag tells whether the third word is a value. Before, the collector tries. */
static bool memo_refs(struct refs_walk *walk)
{
	const bool told = walk->refs->layout->enumerators[E_MEMO_U3_IS_VALUE].present;

	give_own(walk, F_memo_v1, "v1");
	give_own(walk, F_memo_v2, "v2");
	if (!told || slot_has_flag(walk->refs->layout, walk->flags, E_MEMO_U3_IS_VALUE))
		give(walk, own(walk, F_memo_u3), "u3", told ? REF_EXACT : REF_CONSERVATIVE);
	return has(walk, F_memo_u3);
}

/*
 * The memory of a C function, and up to 3.4 a list of such memory that is kept with it. In head, only some of them are
 * marked.
 */
static bool tmpbuf_refs(struct refs_walk *walk)
{
	struct access *access = walk->access;
	uint64_t next, ptr = own(walk, F_tmpbuf_ptr), count = own(walk, F_tmpbuf_cnt);

	if (!has(walk, F_tmpbuf_ptr))
		return false;
	if (has(walk, F_tmpbuf_marked))
		return !own(walk, F_tmpbuf_marked) || give_words(walk, ptr, own(walk, F_tmpbuf_bytes) / 8, "memory");
	for (next = own(walk, F_tmpbuf_next);; next = access_member(access, next, F_tmpbuf_next)) {
		if (!give_words(walk, ptr, count, "memory"))
			return false;
		if (next == 0 || access->failed || !refs_step(walk))
			return next == 0;
		ptr = access_member(access, next, F_tmpbuf_ptr);
		count = access_member(access, next, F_tmpbuf_cnt);
	}
}

/* imemo.c, mark_and_move_method_entry, v3_4_0 to v4_0_5 and head; gc.c, mark_method_entry, v2_3_0 to v3_3_11. */
static bool definition_refs(struct refs_walk *walk, uint64_t def)
{
	struct access *access = walk->access;
	const uint64_t type = access_member(access, def, F_mdef_type);

	if (is(walk, type, E_VM_METHOD_TYPE_ISEQ)) {
		refs_give(walk, access_member(access, def, F_mdef_iseq), REF_CODE, 0, REF_EXACT);
		refs_give_member(walk, def, F_mdef_cref, "cref");
		/* It marks itself, so that it is not moved. */
		if (has(walk, F_mdef_overload) && access_member(access, def, F_mdef_overload) &&
		    own(walk, F_ment_defined_class) != 0)
			give(walk, walk->slot->address, "overloaded", REF_EXACT);
	} else if (is(walk, type, E_VM_METHOD_TYPE_ATTRSET) || is(walk, type, E_VM_METHOD_TYPE_IVAR)) {
		refs_give_member(walk, def, F_mdef_location, "location");
	} else if (is(walk, type, E_VM_METHOD_TYPE_BMETHOD)) {
		refs_give_member(walk, def, F_mdef_proc, "proc");
		if (has(walk, F_mdef_hooks))
			return hook_list_refs(walk, access_member(access, def, F_mdef_hooks));
	} else if (is(walk, type, E_VM_METHOD_TYPE_ALIAS)) {
		refs_give_member(walk, def, F_mdef_original, "original_me");
	} else if (is(walk, type, E_VM_METHOD_TYPE_REFINED)) {
		refs_give_member(walk, def, F_mdef_refined, "orig_me");
		refs_give_member(walk, def, F_mdef_refined_owner, "owner");
	}
	return true;
}

static bool ment_refs(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;
	const uint64_t def = own(walk, F_ment_def);

	give_own(walk, F_ment_owner, "owner");
	give_own(walk, F_ment_defined_class, "defined_class");
	return has(walk, F_ment_defined_class) && has(walk, F_mdef_cref) && has(walk, F_mdef_proc) &&
	       layout->enumerators[E_VM_METHOD_TYPE_BMETHOD].present &&
	       layout->enumerators[E_VM_METHOD_TYPE_REFINED].present && (def == 0 || definition_refs(walk, def));
}

/*
 * imemo.c, imemo_callcache. 3.0 to 3.2: the method entry is always marked. Since 3.3: only if the call cache is for
 * super or a refinement. In 3.4, the class is marked then, too. In 4.0, the class of a cache that is no longer valid is
 * Qundef, and nothing is marked then; before, it is 0.
 */
static bool callcache_refs(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;
	const bool by_kind = layout->enumerators[E_VM_CALLCACHE_SUPER].present;
	const uint64_t klass = own(walk, F_call_cache_klass);

	if (by_kind && !slot_has_flag(layout, walk->flags, E_VM_CALLCACHE_SUPER) &&
	    !slot_has_flag(layout, walk->flags, E_VM_CALLCACHE_REFINEMENT))
		return has(walk, F_call_cache_cme);
	if (layout->functions[P_rb_cc_table_mark])
		give_own(walk, F_call_cache_klass, "klass");
	else if (layout->functions[P_rb_imemo_mark_and_move] && !value_is_object(klass))
		return true;
	give_own(walk, F_call_cache_cme, "cme");
	return has(walk, F_call_cache_cme) && has(walk, F_call_cache_klass);
}

static bool constcache_refs(struct refs_walk *walk)
{
	give_own(walk, F_constcache_value, "value");
	return has(walk, F_constcache_value);
}

static bool cvar_entry_refs(struct refs_walk *walk)
{
	give_own(walk, F_cvar_entry_klass, "class_value");
	give_own(walk, F_cvar_entry_cref, "cref");
	return has(walk, F_cvar_entry_klass);
}

/* internal/imemo.h, rb_imemo_fields_complex_tbl: v4_0_0 to v4_0_5, a pointer to the table; head, the table itself. */
static bool give_ivar_table(struct refs_walk *walk)
{
	const uint64_t table = has(walk, F_fields_ptr)
				   ? own(walk, F_fields_table)
				   : access_address(walk->access, walk->slot->address, F_fields_table);

	return has(walk, F_fields_table) && (table == 0 || refs_give_table(walk, table, REF_IVAR_NAMED, false));
}

/* internal/imemo.h, rb_imemo_fields_ptr: v4_0_0 to v4_0_5, a flag tells where they are; head, always in the slot. */
static uint64_t ivars_at(const struct refs_walk *walk)
{
	return has(walk, F_fields_ptr) && slot_has_flag(walk->refs->layout, walk->flags, E_ROBJECT_HEAP)
		   ? own(walk, F_fields_ptr)
		   : access_address(walk->access, walk->slot->address, F_fields_embed);
}

/*
 * The instance variables of an object that has no room for them, or of a class. imemo.c, imemo_fields, v4_0_0 to v4_0_5
 * and head: the shape of the T_IMEMO itself tells how many there are.
 */
static bool fields_refs(struct refs_walk *walk)
{
	struct object_shape shape;

	give_own(walk, F_basic_klass, "owner");
	if (!ivars_shape(&walk->refs->ivars, walk->flags, &shape) || shape.address == 0 || !has(walk, F_fields_embed))
		return false;
	if (shape.too_complex)
		return give_ivar_table(walk);
	return refs_give_words(walk, ivars_at(walk), shape.fields, REF_IVAR, REF_EXACT);
}

static bool give_key(void *context, struct access *access, uint64_t key, uint64_t record)
{
	const struct refs_walk *walk = context;

	(void)access;
	(void)record;
	refs_give(walk, key, REF_KEY, 0, REF_EXACT);
	return true;
}

/* gc.c, rb_gc_mark_set_no_pin, head */
static bool cdhash_refs(struct refs_walk *walk)
{
	return has(walk, F_cdhash_table) &&
	       st_each_step(walk->access, access_address(walk->access, walk->slot->address, F_cdhash_table),
			    &walk->steps, give_key, walk);
}

bool imemo_refs(struct refs_walk *walk)
{
	static const struct {
		enum layout_enumerator_id type;
		bool (*refs)(struct refs_walk *walk);
	} types[] = {
	    {E_imemo_env, env_refs},
	    {E_imemo_cref, cref_refs},
	    {E_imemo_svar, svar_refs},
	    {E_imemo_throw_data, throw_data_refs},
	    {E_imemo_ifunc, ifunc_refs},
	    {E_imemo_memo, memo_refs},
	    {E_imemo_ment, ment_refs},
	    {E_imemo_ast, ast_refs},
	    {E_imemo_iseq, iseq_refs},
	    {E_imemo_tmpbuf, tmpbuf_refs},
	    {E_imemo_alloc, tmpbuf_refs},
	    {E_imemo_callcache, callcache_refs},
	    {E_imemo_constcache, constcache_refs},
	    {E_imemo_cvar_entry, cvar_entry_refs},
	    {E_imemo_fields, fields_refs},
	    {E_imemo_cdhash, cdhash_refs},
	};
	const uint64_t type = value_imemo_type(walk->refs->layout, walk->flags);

	/* These have no references that are marked. */
	if (is(walk, type, E_imemo_callinfo) || is(walk, type, E_imemo_subclasses) ||
	    (is(walk, type, E_imemo_parser_strterm) && walk->refs->layout->functions[P_rb_imemo_mark_and_move]))
		return true;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (is(walk, type, types[i].type))
			return types[i].refs(walk) && !walk->access->failed;
	return false;
}
