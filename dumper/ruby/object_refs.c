#include "ruby/object_refs.h"

#include "ruby/class_refs.h"
#include "ruby/data_refs.h"
#include "ruby/imemo_refs.h"
#include "ruby/value.h"

/* How the references of an object are found: it depends on its type. */
enum kind {
	REFS_UNKNOWN,
	REFS_NONE, /* not even the class */
	REFS_ONLY_CLASS,
	REFS_OBJECT,
	REFS_ARRAY,
	REFS_HASH,
	REFS_STRING,
	REFS_STRUCT,
	REFS_CLASS,
	REFS_ICLASS,
	REFS_DATA,
	REFS_IMEMO,
	REFS_FILE,
	REFS_REGEXP,
	REFS_MATCH,
	REFS_RATIONAL,
	REFS_COMPLEX,
	REFS_SYMBOL,
};

static void give(const struct refs_walk *walk, uint64_t value, enum ref_label label, uint64_t name)
{
	refs_give(walk, value, label, name, REF_EXACT);
}

/* Gives a VALUE member of the slot. */
static void give_slot(const struct refs_walk *walk, enum layout_member_id id, const char *name)
{
	give(walk, slot_member(walk->refs->layout, walk->slot, id), REF_PART, (uint64_t)(uintptr_t)name);
}

/* Gives VALUEs that are in the slot, from a member on. */
static bool give_embedded(struct refs_walk *walk, enum layout_member_id id, uint64_t count, enum ref_label label)
{
	const struct layout *layout = walk->refs->layout;
	const uint64_t offset = layout->members[id].offset;

	if (!layout_has(layout, id) || offset > walk->slot->size || count > (walk->slot->size - offset) / 8)
		return false;
	for (uint64_t i = 0; i < count; i++)
		give(walk, slot_word(walk->slot, offset + i * 8), label, i);
	return true;
}

static bool object_ivars(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;
	const uint64_t outside = slot_member(layout, walk->slot, F_object_ivptr);
	struct object_shape shape;
	bool embedded;

	if (!ivars_shape(&walk->refs->ivars, walk->flags, &shape))
		return false;
	if (shape.too_complex)
		return refs_give_table(walk, outside, REF_IVAR_NAMED, false);
	embedded = layout->enumerators[E_ROBJECT_HEAP].present ? !slot_has_flag(layout, walk->flags, E_ROBJECT_HEAP)
							       : slot_has_flag(layout, walk->flags, E_ROBJECT_EMBED);
	if (layout_has(layout, F_object_numiv))
		/* What is not set is Qundef. */
		shape.fields = embedded ? OBJECT_EMBEDDED_IVARS : slot_member(layout, walk->slot, F_object_numiv);
	else if (shape.address == 0)
		return false;
	if (embedded)
		return give_embedded(walk, F_object_ary, shape.fields, REF_IVAR);
	return refs_give_words(walk, outside, shape.fields, REF_IVAR, REF_EXACT);
}

/* variable.c, rb_mark_generic_ivar. */
static bool generic_ivars(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;
	struct access *access = walk->access;
	const uint64_t ivars = ivars_generic(&walk->refs->ivars, access, walk->slot->address);
	struct object_shape shape;

	/* Since 4.0, no flag tells whether an object is in the table. */
	if (layout->enumerators[E_imemo_fields].present) {
		give(walk, ivars, REF_PART, (uint64_t)(uintptr_t) "instance variables");
		return walk->refs->ivars.generic_known;
	}
	if (ivars == 0)
		return false;
	if (ivars_generic_are_tables(layout))
		return refs_give_table(walk, ivars, REF_IVAR_NAMED, false);
	if (layout_has(layout, F_generic_ivars_table)) {
		if (!ivars_shape(&walk->refs->ivars, walk->flags, &shape) || shape.address == 0)
			return false;
		if (shape.too_complex)
			return refs_give_table(walk, access_member(access, ivars, F_generic_ivars_table),
					       REF_IVAR_NAMED, false);
	}
	return refs_give_words(walk, access_address(access, ivars, F_generic_ivars_ivptr),
			       ivars_generic_count(access, ivars), REF_IVAR, REF_EXACT);
}

static bool array_elements(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;

	if (slot_has_flag(layout, walk->flags, E_RARRAY_EMBED_FLAG))
		return give_embedded(walk, F_array_ary,
				     (walk->flags & (uint64_t)layout->enumerators[E_RARRAY_EMBED_LEN_MASK].value) >>
					 layout->enumerators[E_RARRAY_EMBED_LEN_SHIFT].value,
				     REF_ELEMENT);
	if (slot_has_flag(layout, walk->flags, E_RUBY_ELTS_SHARED)) {
		give(walk, slot_member(layout, walk->slot, F_array_shared), REF_SHARED, 0);
		return layout_has(layout, F_array_shared);
	}
	return refs_give_words(walk, slot_member(layout, walk->slot, F_array_heap_ptr),
			       slot_member(layout, walk->slot, F_array_heap_len), REF_ELEMENT, REF_EXACT);
}

/* The entries of a small Hash: hash.c, ar_foreach. */
static bool hash_pairs(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;
	const uint64_t table = slot_hash_ar(layout, walk->slot);
	const struct layout_number *mask = &layout->enumerators[E_RHASH_AR_TABLE_BOUND_MASK];
	const struct layout_number *shift = &layout->enumerators[E_RHASH_AR_TABLE_BOUND_SHIFT];
	const uint64_t undefined = (uint64_t)layout->enumerators[E_RUBY_Qundef].value;
	uint64_t count, words[HASH_PAIRS * HASH_PAIR_WORDS];
	struct hash_pairs pairs;

	if (table == 0)
		return true;
	if (!slot_hash_pairs(layout, &pairs) || !mask->present || !shift->present ||
	    !layout->enumerators[E_RUBY_Qundef].present)
		return false;
	count = (walk->flags & (uint64_t)mask->value) >> shift->value;
	if (count > HASH_PAIRS ||
	    !access_bytes(walk->access, table + pairs.offset, words, slot_hash_pairs_bytes(&pairs, count)))
		return false;
	for (uint64_t i = 0; i < count * pairs.words; i += pairs.words) {
		give(walk, words[i], REF_KEY, 0);
		/* A pair that was deleted has Qundef as its key, and nothing is known of its value (ar_clear_entry). */
		if (words[i] != undefined)
			give(walk, words[i + 1], REF_VALUE, words[i]);
	}
	return true;
}

static bool hash_entries(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;
	const uint64_t table = slot_hash_st(layout, walk->slot, walk->flags);

	give(walk, slot_member(layout, walk->slot, F_hash_ifnone), REF_DEFAULT, 0);
	if (!layout_has(layout, F_hash_ifnone))
		return false;
	if (table != 0)
		return refs_give_table(walk, table, REF_VALUE, true);
	return !layout->enumerators[E_RHASH_ST_TABLE_FLAG].present || hash_pairs(walk);
}

static bool string_root(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;

	if (!slot_has_flag(layout, walk->flags, E_RSTRING_NOEMBED) ||
	    !slot_has_flag(layout, walk->flags, E_RUBY_ELTS_SHARED))
		return true;
	give(walk, slot_member(layout, walk->slot, F_string_shared), REF_SHARED, 0);
	return layout_has(layout, F_string_shared);
}

/*
 * The holder of a Struct's instance variables: gc.c, rb_gc_mark_children, and internal/struct.h, RSTRUCT_FIELDS_OBJ,
 * v4_0_0 to v4_0_5, if it is not in the table of generic ones; head.
 */
static bool struct_fields(struct refs_walk *walk, uint64_t length)
{
	const struct layout *layout = walk->refs->layout;
	const uint64_t name = (uint64_t)(uintptr_t) "instance variables";
	struct object_shape shape;

	if (!layout->enumerators[E_RSTRUCT_GEN_FIELDS].present) {
		give(walk, slot_member(layout, walk->slot, F_struct_fields), REF_PART, name);
		return true;
	}
	if (!ivars_shape(&walk->refs->ivars, walk->flags, &shape))
		return false;
	if ((shape.fields == 0 && !shape.too_complex) || slot_has_flag(layout, walk->flags, E_RSTRUCT_GEN_FIELDS))
		return true;
	if (length == 0)
		give(walk, slot_member(layout, walk->slot, F_struct_fields), REF_PART, name);
	else
		give(walk, slot_word(walk->slot, layout->members[F_struct_ary].offset + length * 8), REF_PART, name);
	return true;
}

static bool struct_members(struct refs_walk *walk)
{
	const struct layout *layout = walk->refs->layout;
	uint64_t length;
	bool all = true;

	if (!slot_struct_length(layout, walk->flags, &length))
		return false;
	if (layout_has(layout, F_struct_fields))
		all = struct_fields(walk, length);
	if (length != 0)
		return give_embedded(walk, F_struct_ary, length, REF_MEMBER) && all;
	return all && refs_give_words(walk, slot_member(layout, walk->slot, F_struct_ptr),
				      slot_member(layout, walk->slot, F_struct_len), REF_MEMBER, REF_EXACT);
}

static bool file_parts(struct refs_walk *walk)
{
	static const struct {
		enum layout_member_id id;
		const char *name;
	} parts[] = {
	    {F_io_pathv, "path"},	  {F_io_tied, "IO for writing"},     {F_io_asciicompat, "encoding"},
	    {F_io_pre_ecopts, "options"}, {F_io_ecopts, "encoding options"}, {F_io_write_lock, "write lock"},
	    {F_io_timeout, "timeout"},
	};
	const struct layout *layout = walk->refs->layout;
	const uint64_t io = slot_member(layout, walk->slot, F_file_fptr);

	if (io == 0)
		return true;
	/* gc.c: `self` is marked since v3_1_0. That release has got imemo_constcache, too. */
	if (layout->enumerators[E_imemo_constcache].present)
		refs_give_member(walk, io, F_io_self, "self");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		refs_give_member(walk, io, parts[i].id, parts[i].name);
	return layout_has(layout, F_io_pathv) && layout_has(layout, F_io_write_lock);
}

/* Gives two members of the slot. Returns whether this Ruby has both. */
static bool two(struct refs_walk *walk, enum layout_member_id first, const char *first_name,
		enum layout_member_id second, const char *second_name)
{
	give_slot(walk, first, first_name);
	give_slot(walk, second, second_name);
	return layout_has(walk->refs->layout, first) && layout_has(walk->refs->layout, second);
}

static bool by_kind(struct refs_walk *walk, enum kind kind)
{
	switch (kind) {
	case REFS_UNKNOWN:
		return false;
	case REFS_NONE:
	case REFS_ONLY_CLASS:
		return true;
	case REFS_OBJECT:
		return object_ivars(walk);
	case REFS_ARRAY:
		return array_elements(walk);
	case REFS_HASH:
		return hash_entries(walk);
	case REFS_STRING:
		return string_root(walk);
	case REFS_STRUCT:
		return struct_members(walk);
	case REFS_CLASS:
		return class_refs(walk);
	case REFS_ICLASS:
		return iclass_refs(walk);
	case REFS_DATA:
		return data_refs(walk);
	case REFS_IMEMO:
		return imemo_refs(walk);
	case REFS_FILE:
		return file_parts(walk);
	case REFS_REGEXP:
		give_slot(walk, F_regexp_src, "source");
		return layout_has(walk->refs->layout, F_regexp_src);
	case REFS_MATCH:
		return two(walk, F_match_str, "string", F_match_regexp, "pattern");
	case REFS_SYMBOL:
		give_slot(walk, F_symbol_fstr, "name");
		return layout_has(walk->refs->layout, F_symbol_fstr);
	case REFS_RATIONAL:
		return two(walk, F_rational_num, "numerator", F_rational_den, "denominator");
	case REFS_COMPLEX:
		return two(walk, F_complex_real, "real", F_complex_imag, "imaginary");
	}
	return false;
}

/* gc.c, gc_mark_children, v1_9_3_0 to v4_0_5 and head: the class of these is not marked. */
static bool has_class(enum kind kind)
{
	return kind != REFS_NONE && kind != REFS_IMEMO && kind != REFS_UNKNOWN;
}

bool object_refs_each(struct object_refs *refs, struct access *access, const struct object_slot *slot,
		      object_ref_visit *visit, void *context)
{
	const struct layout *layout = refs->layout;
	const uint64_t flags = slot_flags(layout, slot);
	struct access try = *access;
	const uint64_t steps = steps_for_one(&refs->steps);
	struct refs_walk walk = {refs, &try, slot, flags, visit, context, steps};
	const enum kind kind = refs->kinds[(flags & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value) % OBJECT_TYPES];
	bool all = true;

	if (!refs_step(&walk))
		return false;
	if (has_class(kind))
		give(&walk, slot_member(layout, slot, F_basic_klass), REF_CLASS, 0);
	if (ivars_may_be_generic(layout, flags) || (layout->enumerators[E_imemo_fields].present && has_class(kind)))
		all = generic_ivars(&walk);
	all &= by_kind(&walk, kind) && !try.failed;
	steps_take(&refs->steps, steps - walk.steps);
	return all;
}

bool object_refs_read(const struct ruby *ruby, struct object_refs *ret)
{
	static const struct {
		enum layout_enumerator_id type;
		enum kind kind;
	} kinds[] = {
	    {E_RUBY_T_FLOAT, REFS_NONE},      {E_RUBY_T_BIGNUM, REFS_NONE},	  {E_RUBY_T_SYMBOL, REFS_NONE},
	    {E_RUBY_T_ZOMBIE, REFS_NONE},     {E_RUBY_T_MOVED, REFS_NONE},	  {E_RUBY_T_OBJECT, REFS_OBJECT},
	    {E_RUBY_T_ARRAY, REFS_ARRAY},     {E_RUBY_T_HASH, REFS_HASH},	  {E_RUBY_T_STRING, REFS_STRING},
	    {E_RUBY_T_STRUCT, REFS_STRUCT},   {E_RUBY_T_CLASS, REFS_CLASS},	  {E_RUBY_T_MODULE, REFS_CLASS},
	    {E_RUBY_T_ICLASS, REFS_ICLASS},   {E_RUBY_T_DATA, REFS_DATA},	  {E_RUBY_T_IMEMO, REFS_IMEMO},
	    {E_RUBY_T_FILE, REFS_FILE},	      {E_RUBY_T_REGEXP, REFS_REGEXP},	  {E_RUBY_T_MATCH, REFS_MATCH},
	    {E_RUBY_T_COMPLEX, REFS_COMPLEX}, {E_RUBY_T_RATIONAL, REFS_RATIONAL},
	};

	*ret = (struct object_refs){.layout = ruby->layout, .steps = steps_begin(OBJECT_REFS_NEEDED, OBJECT_REFS_FEW)};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct layout_number *type = &ruby->layout->enumerators[kinds[i].type];

		if (type->present)
			ret->kinds[(uint64_t)type->value % OBJECT_TYPES] = (uint8_t)kinds[i].kind;
	}
	/* gc.c, rb_gc_mark_children: a Symbol's class and name are marked since v4_0_0, which has got imemo_fields, too. */
	if (ruby->layout->enumerators[E_imemo_fields].present)
		ret->kinds[(uint64_t)ruby->layout->enumerators[E_RUBY_T_SYMBOL].value % OBJECT_TYPES] = REFS_SYMBOL;
	return ivars_read(ruby, &ret->ivars);
}

void object_refs_clear(struct object_refs *refs)
{
	ivars_clear(&refs->ivars);
}

/* The words outside the slot that the references of an Array, an object or a Struct are in. */
static uint64_t outside_words(struct object_refs *refs, const struct object_slot *slot, uint64_t flags, enum kind kind,
			      uint64_t *length)
{
	const struct layout *layout = refs->layout;
	struct object_shape shape;

	switch (kind) {
	case REFS_ARRAY:
		*length = 8 * slot_member(layout, slot, F_array_heap_len);
		return slot_has_flag(layout, flags, E_RARRAY_EMBED_FLAG) ||
			       slot_has_flag(layout, flags, E_RUBY_ELTS_SHARED)
			   ? 0
			   : slot_member(layout, slot, F_array_heap_ptr);
	case REFS_STRUCT:
		*length = 8 * slot_member(layout, slot, F_struct_len);
		return flags & (uint64_t)layout->enumerators[E_RSTRUCT_EMBED_LEN_MASK].value
			   ? 0
			   : slot_member(layout, slot, F_struct_ptr);
	case REFS_OBJECT:
		if (layout->enumerators[E_ROBJECT_HEAP].present ? !slot_has_flag(layout, flags, E_ROBJECT_HEAP)
								: slot_has_flag(layout, flags, E_ROBJECT_EMBED))
			return 0;
		*length = layout_has(layout, F_object_numiv)	     ? 8 * slot_member(layout, slot, F_object_numiv)
			  : ivars_shape(&refs->ivars, flags, &shape) ? 8 * shape.fields
								     : 0;
		return slot_member(layout, slot, F_object_ivptr);
	default:
		return 0;
	}
}

/* The struct outside the slot that leads to the references. */
static uint64_t outside_struct(const struct object_refs *refs, const struct object_slot *slot, uint64_t flags,
			       enum kind kind, uint64_t *length)
{
	const struct layout *layout = refs->layout;
	uint64_t table;

	switch (kind) {
	case REFS_HASH:
		table = slot_hash_st(layout, slot, flags);
		*length = table != 0 ? (uint64_t)layout->sizes[S_st].value : HASH_PAIRS * HASH_PAIR_WORDS * 8;
		return table != 0 ? table : slot_hash_ar(layout, slot);
	case REFS_DATA:
		return data_refs_outside(layout, slot, flags, length);
	case REFS_FILE:
		*length = (uint64_t)layout->sizes[S_io].value;
		return slot_member(layout, slot, F_file_fptr);
	default:
		return 0;
	}
}

uint64_t object_refs_wants(struct object_refs *refs, struct access *access, const struct object_slot *slot,
			   enum refs_round round, uint64_t *length)
{
	const struct layout *layout = refs->layout;
	const uint64_t flags = slot_flags(layout, slot);
	const enum kind kind = refs->kinds[(flags & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value) % OBJECT_TYPES];
	struct access try = *access;
	uint64_t table, ret;

	if (round == REFS_STRUCTS) {
		ret = outside_words(refs, slot, flags, kind, length);
		return ret != 0 ? ret : outside_struct(refs, slot, flags, kind, length);
	}
	if (kind != REFS_HASH || !layout_has(layout, F_st_entries))
		return 0;
	table = slot_hash_st(layout, slot, flags);
	if (table == 0)
		return 0;
	*length = access_member(&try, table, F_st_entries_bound) * (uint64_t)layout->sizes[S_st_entry].value;
	ret = access_member(&try, table, F_st_entries);
	return try.failed ? 0 : ret;
}
