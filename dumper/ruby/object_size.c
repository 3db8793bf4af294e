#include "ruby/object_size.h"

#include "ruby/class_size.h"
#include "ruby/data_size.h"
#include "ruby/iseq_size.h"
#include "ruby/st.h"
#include "ruby/value.h"

/* The longest chain of patterns that is looked at. */
#define PATTERNS_MAX 16

/* regcomp.c, ONIG_CHAR_TABLE_SIZE: int_map has a number of 4 bytes for each byte, v1_9_3_0 to v4_0_5 and head. */
#define INT_MAP_BYTES (UINT64_C(256) * 4)

/*
 * The number of a string's encoding has 7 bits (encoding.h, ENCODING_MASK, v2_1_0 to v4_0_5 and head). Before, it has 10, but
 * no program is known that has more than 127 encodings.
 */
#define ENCODING_BITS 0x7fu

/* encoding.c, ENCINDEX_BUILTIN_MAX, v1_9_3_0 to v2_1_10: ASCII-8BIT, UTF-8 and US-ASCII. */
#define ENCODINGS_OF_BYTES 3

/* internal/bignum.h, BDIGIT (up to 2.1 include/ruby/defines.h), v1_9_3_0 to v4_0_5 and head: an unsigned int. */
#define BDIGIT_BYTES 4

/* gc.c, imemo_memsize, v2_5_0 to v3_4_9: `sizeof(def)` of a method entry, a pointer. */
#define METHOD_ENTRY_BYTES 8

static bool is(const struct object_sizes *sizes, uint64_t number, enum layout_enumerator_id id)
{
	const struct layout_number *enumerator = &sizes->layout->enumerators[id];

	return enumerator->present && (uint64_t)enumerator->value == number;
}

static uint64_t size_of(const struct object_sizes *sizes, enum layout_struct_id id)
{
	return sizes->layout->sizes[id].present ? (uint64_t)sizes->layout->sizes[id].value : 0;
}

/* The number of a string's encoding. */
static uint64_t encoding_of(const struct object_sizes *sizes, uint64_t flags)
{
	const struct layout_number *shift = &sizes->layout->enumerators[E_RUBY_ENCODING_SHIFT];

	return shift->present ? flags >> shift->value & ENCODING_BITS : ENCODING_BITS;
}

/*
 * The bytes of the terminator: string.c, TERM_LEN, the shortest character of the encoding. 0 if that is not known: up to
 * 2.1, the numbers of the encodings with longer characters depend on the program. Those of the first three do not.
 */
static uint64_t terminator(const struct object_sizes *sizes, uint64_t flags)
{
	const uint64_t encoding = encoding_of(sizes, flags);

	if (!sizes->layout->enumerators[E_RUBY_ENCINDEX_UTF_16BE].present)
		return encoding < ENCODINGS_OF_BYTES ? 1 : 0;
	if (is(sizes, encoding, E_RUBY_ENCINDEX_UTF_32BE) || is(sizes, encoding, E_RUBY_ENCINDEX_UTF_32LE) ||
	    is(sizes, encoding, E_RUBY_ENCINDEX_UTF_32))
		return 4;
	if (is(sizes, encoding, E_RUBY_ENCINDEX_UTF_16BE) || is(sizes, encoding, E_RUBY_ENCINDEX_UTF_16LE) ||
	    is(sizes, encoding, E_RUBY_ENCINDEX_UTF_16))
		return 2;
	return 1;
}

static bool string_size(const struct object_sizes *sizes, const struct object_slot *slot, uint64_t flags, uint64_t *ret)
{
	*ret = slot_member(sizes->layout, slot, F_string_capa) + terminator(sizes, flags);
	return layout_has(sizes->layout, F_string_capa) && terminator(sizes, flags) > 0;
}

static bool array_size(const struct object_sizes *sizes, const struct object_slot *slot, uint64_t flags, uint64_t *ret)
{
	*ret = 8 * slot_member(sizes->layout, slot,
			       slot_has_flag(sizes->layout, flags, E_RARRAY_SHARED_ROOT_FLAG) ? F_array_heap_len
											      : F_array_capa);
	return layout_has(sizes->layout, F_array_capa);
}

static bool hash_size(const struct object_sizes *sizes, struct access *access, const struct object_slot *slot,
		      uint64_t flags, uint64_t *ret)
{
	const uint64_t table = slot_hash_st(sizes->layout, slot, flags);

	if (table == 0) {
		/* Since 3.3, the table of a small hash is in its slot. 2.6 counts a table that is not there, too. */
		if (layout_has(sizes->layout, F_hash_ar) &&
		    (slot_member(sizes->layout, slot, F_hash_ar) != 0 || !layout_has(sizes->layout, F_ar_table_pairs)))
			*ret = size_of(sizes, S_ar_table);
		return true;
	}
	if (!st_size(access, table, ret))
		return false;
	if (!layout_has(sizes->layout, F_hash_st))
		*ret -= size_of(sizes, S_st);
	return true;
}

static bool ivars_size(struct object_sizes *sizes, struct access *access, const struct object_slot *slot,
		       uint64_t flags, uint64_t *ret)
{
	const struct layout *layout = sizes->layout;
	struct object_shape shape;
	const bool has_shape = ivars_shape(&sizes->ivars, flags, &shape);

	if (!has_shape && sizes->ivars.shapes != 0)
		return false;
	if (shape.too_complex)
		return st_size(access, slot_member(sizes->layout, slot, F_object_ivptr), ret);
	if (layout_has(layout, F_object_numiv)) {
		if (slot_member(sizes->layout, slot, F_object_ivptr) != 0)
			*ret = 8 * slot_member(sizes->layout, slot, F_object_numiv);
		return layout->enumerators[E_ROBJECT_EMBED].present;
	}
	*ret = 8 * shape.capacity;
	return shape.address != 0 && layout_has(layout, F_shape_capacity) && layout_has(layout, F_object_ivptr);
}

static bool struct_size(const struct object_sizes *sizes, const struct object_slot *slot, uint64_t *ret)
{
	const struct layout_number *mask = &sizes->layout->enumerators[E_RSTRUCT_EMBED_LEN_MASK];

	if (slot_member(sizes->layout, slot, F_struct_ptr) != 0)
		*ret = 8 * slot_member(sizes->layout, slot, F_struct_len);
	return mask->present && layout_has(sizes->layout, F_struct_len);
}

static bool bignum_size(const struct object_sizes *sizes, const struct object_slot *slot, uint64_t *ret)
{
	if (slot_member(sizes->layout, slot, F_bignum_digits) != 0)
		*ret = slot_member(sizes->layout, slot, F_bignum_len) * BDIGIT_BYTES;
	return layout_has(sizes->layout, F_bignum_len);
}

static bool pattern_size(struct access *access, uint64_t pattern, uint64_t *ret)
{
	for (int i = 0; pattern != 0 && i < PATTERNS_MAX; i++) {
		*ret += access_sizeof(access, S_pattern);
		if (access_member(access, pattern, F_pattern_code) != 0)
			*ret += access_member(access, pattern, F_pattern_alloc);
		if (access_member(access, pattern, F_pattern_exact) != 0)
			*ret += access_member(access, pattern, F_pattern_exact_end) -
				access_member(access, pattern, F_pattern_exact);
		if (access_member(access, pattern, F_pattern_int_map) != 0)
			*ret += INT_MAP_BYTES;
		if (layout_has(access->layout, F_pattern_int_map_backward) &&
		    access_member(access, pattern, F_pattern_int_map_backward) != 0)
			*ret += INT_MAP_BYTES;
		if (access_member(access, pattern, F_pattern_repeat_range) != 0)
			*ret += access_member(access, pattern, F_pattern_repeat_range_alloc) *
				access_sizeof(access, S_repeat_range);
		pattern = access_member(access, pattern, F_pattern_chain);
	}
	return !access->failed && pattern == 0;
}

/* Where the rmatch of a MatchData is; 0 if it has none. */
static uint64_t match_table(const struct object_sizes *sizes, const struct object_slot *slot)
{
	return layout_has(sizes->layout, F_match_ext) ? slot_member(sizes->layout, slot, F_match_ext)
						      : slot->address + size_of(sizes, S_match);
}

static bool match_size(const struct object_sizes *sizes, struct access *access, const struct object_slot *slot,
		       uint64_t *ret)
{
	const uint64_t ext = match_table(sizes, slot);

	if (ext == 0)
		return true;
	/* onig_region_memsize: an OnigPosition (8 bytes) for the beginning and the end of each group. */
	*ret = size_of(sizes, S_registers) + access_member(access, ext, F_match_ext_allocated) * 16 +
	       access_member(access, ext, F_match_ext_offsets) * size_of(sizes, S_match_offset);
	if (layout_has(sizes->layout, F_match_ext))
		*ret += size_of(sizes, S_match_ext);
	return !access->failed;
}

static bool file_size(const struct object_sizes *sizes, struct access *access, const struct object_slot *slot,
		      uint64_t *ret)
{
	const uint64_t io = slot_member(sizes->layout, slot, F_file_fptr);

	if (io == 0)
		return true;
	*ret = size_of(sizes, S_io) + access_member(access, io, F_io_rbuf_capa) +
	       access_member(access, io, F_io_wbuf_capa) + access_member(access, io, F_io_cbuf_capa);
	/* The size of a converter is not known. */
	return access_member(access, io, F_io_readconv) == 0 && access_member(access, io, F_io_writeconv) == 0 &&
	       !access->failed;
}

/* imemo.c, rb_imemo_memsize, v4_0_0 to v4_0_5. In head, all are in the slot. */
static bool fields_size(struct object_sizes *sizes, struct access *access, const struct object_slot *slot,
			uint64_t flags, uint64_t *ret)
{
	struct object_shape shape;

	if (!layout_has(sizes->layout, F_fields_ptr))
		return false;
	if (!slot_has_flag(sizes->layout, flags, E_ROBJECT_HEAP))
		return true;
	if (!ivars_shape(&sizes->ivars, flags, &shape) || shape.address == 0)
		return false;
	if (shape.too_complex)
		return layout_has(sizes->layout, F_fields_table) &&
		       st_size(access, slot_member(sizes->layout, slot, F_fields_table), ret);
	*ret = 8 * shape.capacity;
	return layout_has(sizes->layout, F_shape_capacity);
}

static bool imemo_size(struct object_sizes *sizes, struct access *access, const struct object_slot *slot,
		       uint64_t flags, uint64_t *steps, uint64_t *ret)
{
	const uint64_t type = value_imemo_type(sizes->layout, flags);

	if (is(sizes, type, E_imemo_iseq))
		return iseq_size(access, slot->address, flags, steps, ret);
	if (is(sizes, type, E_imemo_fields))
		return fields_size(sizes, access, slot, flags, ret);
	if (is(sizes, type, E_imemo_ast))
		return false;
	if (is(sizes, type, E_imemo_ment))
		*ret = sizes->layout->enumerators[E_imemo_alloc].present ||
			       sizes->layout->enumerators[E_imemo_tmpbuf].present
			   ? METHOD_ENTRY_BYTES
			   : 0;
	else if (is(sizes, type, E_imemo_env))
		*ret = 8 * slot_member(sizes->layout, slot, F_env_size);
	else if (is(sizes, type, E_imemo_tmpbuf) || is(sizes, type, E_imemo_alloc))
		*ret = 8 * slot_member(sizes->layout, slot, F_tmpbuf_cnt);
	return true;
}

/* How the size of an object with these flags is computed. */
static enum object_size_kind kind_of(const struct object_sizes *sizes, uint64_t flags)
{
	const uint64_t type = flags & (uint64_t)sizes->layout->enumerators[E_RUBY_T_MASK].value;

	return sizes->kinds[type % OBJECT_TYPES];
}

/* Whether the instance variables of a T_OBJECT are in its slot. */
static bool has_own_ivars(struct object_sizes *sizes, uint64_t flags)
{
	const struct layout *layout = sizes->layout;
	struct object_shape shape;

	if (!ivars_shape(&sizes->ivars, flags, &shape) && sizes->ivars.shapes != 0)
		return false;
	/* An object with too many shapes can have ROBJECT_EMBED from before. */
	if (shape.too_complex)
		return false;
	return layout->enumerators[E_ROBJECT_HEAP].present ? !slot_has_flag(layout, flags, E_ROBJECT_HEAP)
							   : slot_has_flag(layout, flags, E_ROBJECT_EMBED);
}

/* Whether the flags of an object tell that it owns nothing because of its type. */
static bool is_nothing_by_type(struct object_sizes *sizes, uint64_t flags)
{
	const struct layout *layout = sizes->layout;

	switch (kind_of(sizes, flags)) {
	case SIZE_NOTHING:
		return true;
	case SIZE_STRING:
		return !slot_has_flag(layout, flags, E_RSTRING_NOEMBED) ||
		       slot_has_flag(layout, flags, E_RUBY_ELTS_SHARED) || slot_has_flag(layout, flags, E_STR_NOFREE);
	case SIZE_ARRAY:
		return slot_has_flag(layout, flags, E_RUBY_ELTS_SHARED) ||
		       slot_has_flag(layout, flags, E_RARRAY_EMBED_FLAG);
	case SIZE_OBJECT:
		return has_own_ivars(sizes, flags);
	case SIZE_STRUCT:
		return (flags & (uint64_t)layout->enumerators[E_RSTRUCT_EMBED_LEN_MASK].value) != 0;
	case SIZE_BIGNUM:
		return slot_has_flag(layout, flags, E_BIGNUM_EMBED_FLAG);
	default:
		return false;
	}
}

bool object_size_is_nothing(struct object_sizes *sizes, uint64_t flags)
{
	return !ivars_may_be_generic(sizes->layout, flags) && is_nothing_by_type(sizes, flags);
}

uint64_t object_size_wants(const struct object_sizes *sizes, const struct object_slot *slot, uint64_t *length)
{
	const uint64_t flags = slot_flags(sizes->layout, slot);

	switch (kind_of(sizes, flags)) {
	case SIZE_HASH:
		*length = size_of(sizes, S_st);
		return slot_hash_st(sizes->layout, slot, flags);
	case SIZE_REGEXP:
		*length = size_of(sizes, S_pattern);
		return slot_member(sizes->layout, slot, F_regexp_ptr);
	case SIZE_MATCH:
		*length = size_of(sizes, S_match_ext);
		return match_table(sizes, slot);
	case SIZE_FILE:
		*length = size_of(sizes, S_io);
		return slot_member(sizes->layout, slot, F_file_fptr);
	case SIZE_DATA:
		return data_size_wants(&sizes->types, sizes->layout, slot, flags, length);
	default:
		return 0;
	}
}

/* The bytes that an object owns because of its type; only if is_nothing_by_type() is false. */
static bool size_by_type(struct object_sizes *sizes, struct access *access, const struct object_slot *slot,
			 uint64_t flags, uint64_t *steps, uint64_t *ret)
{
	struct object_shape shape;

	switch (kind_of(sizes, flags)) {
	case SIZE_NOTHING:
		return true;
	case SIZE_UNKNOWN:
		return false;
	case SIZE_STRING:
		return string_size(sizes, slot, flags, ret);
	case SIZE_ARRAY:
		return array_size(sizes, slot, flags, ret);
	case SIZE_OBJECT:
		return ivars_size(sizes, access, slot, flags, ret);
	case SIZE_IMEMO:
		return imemo_size(sizes, access, slot, flags, steps, ret);
	case SIZE_STRUCT:
		return struct_size(sizes, slot, ret);
	case SIZE_BIGNUM:
		return bignum_size(sizes, slot, ret);
	case SIZE_CLASS:
		ivars_shape(&sizes->ivars, flags, &shape);
		return class_size(access, slot->address, flags, shape.address, steps, ret);
	case SIZE_ICLASS:
		return class_included_size(access, slot->address, flags, steps, ret);
	case SIZE_HASH:
		return hash_size(sizes, access, slot, flags, ret);
	case SIZE_REGEXP:
		return pattern_size(access, slot_member(sizes->layout, slot, F_regexp_ptr), ret);
	case SIZE_MATCH:
		return match_size(sizes, access, slot, ret);
	case SIZE_FILE:
		return file_size(sizes, access, slot, ret);
	case SIZE_DATA:
		return data_size(&sizes->types, sizes->ivars.lasting, access, slot, flags, ret);
	}
	return false;
}

/*
 * variable.c, rb_generic_ivar_memsize, v2_2_0 to v3_4_9: of an object without room for instance variables; these are in a
 * gen_ivtbl, or in an st_table if its shape is too complex. Up to v2_1_10, they are in an st_table.
 */
static bool generic_ivars_size(struct object_sizes *sizes, struct access *access, const struct object_slot *slot,
			       uint64_t flags, uint64_t *ret)
{
	const struct layout *layout = sizes->layout;
	struct access try = *access;
	const uint64_t ivars = ivars_generic(&sizes->ivars, &try, slot->address);

	if (ivars == 0)
		return false;
	if (ivars_generic_are_tables(layout))
		return st_size(&try, ivars, ret);
	if (layout_has(layout, F_generic_ivars_table)) {
		struct object_shape shape;

		if (!ivars_shape(&sizes->ivars, flags, &shape) || shape.address == 0)
			return false;
		if (shape.too_complex) {
			if (!st_size(&try, access_member(&try, ivars, F_generic_ivars_table), ret))
				return false;
			*ret += size_of(sizes, S_generic_ivars);
			return true;
		}
	}
	*ret = layout->members[F_generic_ivars_ivptr].offset + 8 * ivars_generic_count(&try, ivars);
	return !try.failed;
}

bool object_size(struct object_sizes *sizes, struct access *access, const struct object_slot *slot, uint64_t *owned)
{
	struct access try = *access;
	const uint64_t flags = slot_flags(sizes->layout, slot), allowed = steps_for_one(&sizes->steps);
	uint64_t steps = allowed;
	bool exact;

	*owned = 0;
	exact = is_nothing_by_type(sizes, flags) || size_by_type(sizes, &try, slot, flags, &steps, owned);
	steps_take(&sizes->steps, allowed - steps);
	if (try.failed || *owned > sizes->owned_max) {
		*owned = 0;
		exact = false;
	}
	if (ivars_may_be_generic(sizes->layout, flags)) {
		uint64_t size = 0;

		if (generic_ivars_size(sizes, access, slot, flags, &size) && size <= sizes->owned_max - *owned)
			*owned += size;
		else
			exact = false;
	}
	return exact;
}

static void read_kinds(struct object_sizes *sizes)
{
	static const struct {
		enum layout_enumerator_id type;
		enum object_size_kind kind;
	} kinds[] = {
	    {E_RUBY_T_DATA, SIZE_DATA},	    {E_RUBY_T_STRING, SIZE_STRING}, {E_RUBY_T_ARRAY, SIZE_ARRAY},
	    {E_RUBY_T_OBJECT, SIZE_OBJECT}, {E_RUBY_T_IMEMO, SIZE_IMEMO},   {E_RUBY_T_STRUCT, SIZE_STRUCT},
	    {E_RUBY_T_BIGNUM, SIZE_BIGNUM}, {E_RUBY_T_CLASS, SIZE_CLASS},   {E_RUBY_T_MODULE, SIZE_CLASS},
	    {E_RUBY_T_ICLASS, SIZE_ICLASS}, {E_RUBY_T_HASH, SIZE_HASH},	    {E_RUBY_T_REGEXP, SIZE_REGEXP},
	    {E_RUBY_T_MATCH, SIZE_MATCH},   {E_RUBY_T_FILE, SIZE_FILE},	    {E_RUBY_T_NODE, SIZE_UNKNOWN},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct layout_number *type = &sizes->layout->enumerators[kinds[i].type];

		if (type->present)
			sizes->kinds[(uint64_t)type->value % OBJECT_TYPES] = (uint8_t)kinds[i].kind;
	}
}

bool object_sizes_read(const struct ruby *ruby, struct object_sizes *ret)
{
	*ret = (struct object_sizes){.layout = ruby->layout,
				     .owned_max = OBJECT_OWNED_MAX,
				     .steps = steps_begin(OBJECT_SIZE_NEEDED, OBJECT_SIZE_FEW)};
	read_kinds(ret);
	return ivars_read(ruby, &ret->ivars);
}

void object_sizes_clear(struct object_sizes *sizes)
{
	ivars_clear(&sizes->ivars);
}
