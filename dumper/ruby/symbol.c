#include "ruby/symbol.h"

#include <ctype.h>

#include "ruby/st.h"

/*
 * symbol.c, v2_2_0 to v4.0.5 and head: ID_ENTRY_UNIT, an enumerator until v2_4_10. Since then it is a `static const
 * int`, and DWARF has no value of it if Ruby was compiled without optimisation.
 */
#define ID_ENTRY_UNIT_UNOPTIMISED 512

/*
 * parse.y, op_tbl[], v1_9_3_0 to v2_1_10: pairs of an ID and a C string of at most 3 characters. The limits for what
 * is read of it.
 */
enum { OPERATORS_MAX = 32, OPERATOR_LENGTH = 3 };

static struct bytes none(struct access *access, uint64_t address)
{
	access_fail(access, address);
	return (struct bytes){0, 0};
}

uint64_t symbol_serials_end(struct access *access, uint64_t symbols)
{
	if (layout_has(access->layout, F_symbols_next_id))
		return access_member(access, symbols, F_symbols_next_id);
	return access_member(access, symbols, F_symbols_last_id) + 1;
}

/*
 * The name at a place in an inner list of the symbol table. In head (symbol.c, set_id_entry) the list is a T_DATA of
 * a rb_darray of sym_id_entry (darray.h: its elements follow the rb_darray_meta_t); before, it is an Array of names
 * and Symbols in turn.
 */
static uint64_t name_at(struct access *access, uint64_t list, uint64_t place)
{
	uint64_t object, elements, words;

	if (!layout_has(access->layout, F_symbol_entry_str)) {
		words = access_enum(access, E_ID_ENTRY_SIZE);
		if (words > 0 && value_array(access, list, &elements) > place * words)
			return access_word(access, elements + place * words * 8);
		access_fail(access, list);
		return 0;
	}
	object = value_object(access, list);
	if (!access->failed && value_type(access, object) != access_enum(access, E_RUBY_T_DATA))
		access_fail(access, object);
	elements = access_member(access, object, F_typed_data_data);
	if (!access->failed && access_member(access, elements, F_darray_size) <= place)
		access_fail(access, elements);
	return access_member(access,
			     elements + access_sizeof(access, S_darray) + place * access_sizeof(access, S_symbol_entry),
			     F_symbol_entry_str);
}

/* parse.y, op_sym[]: the String of an operator; 0 if `id` is no operator, or one whose String was never asked for. */
static uint64_t operator_string(struct access *access, uint64_t symbols, uint64_t id)
{
	const struct layout_member *strings = &access->layout->members[F_symbols_op_sym];

	return strings->present && id < strings->size / 8 ? access_word(access, symbols + strings->offset + id * 8) : 0;
}

/* The name of an operator from Ruby's list of those that are longer than one character. */
static bool operator_by_list(const struct ruby *ruby, const struct access *from, uint64_t id, struct bytes *ret)
{
	for (size_t i = 0; ruby->operators != 0 && i < OPERATORS_MAX; i++) {
		struct access access = *from;
		char name[OPERATOR_LENGTH + 1];
		size_t length = 0;

		if (access_word(&access, ruby->operators + i * 16) != id)
			continue;
		ret->address = access_word(&access, ruby->operators + i * 16 + 8);
		if (!access_bytes(&access, ret->address, name, sizeof(name)))
			continue;
		while (length < OPERATOR_LENGTH && ispunct((unsigned char)name[length]))
			length++;
		ret->length = length;
		if (length > 0 && name[length] == '\0')
			return true;
	}
	return false;
}

/* Up to 2.1: the names of operators are in an array, all others in a hash table. */
static struct bytes name_by_table(const struct ruby *ruby, struct access *access, uint64_t id)
{
	uint64_t string = operator_string(access, ruby->symbols, id);
	struct bytes name;

	if (string == 0 && operator_by_list(ruby, access, id, &name))
		return name;
	if (string == 0 && !st_lookup(access, access_member(access, ruby->symbols, F_symbols_id_str), id, &string))
		return none(access, ruby->symbols);
	return value_string(access, string);
}

bool symbol_add(const struct ruby *ruby, struct access *access, uint64_t id, struct text *text)
{
	const char character = (char)id;

	if (layout_has(access->layout, F_symbols_op_sym) && id <= INT8_MAX && ispunct((int)id)) {
		text_add(text, &character, 1);
		return true;
	}
	return value_append(text, access, symbol_name(ruby, access, id));
}

bool symbol_add_value(const struct ruby *ruby, struct access *access, uint64_t value, struct text *text)
{
	const struct layout_number *flag = &ruby->layout->enumerators[E_RUBY_SYMBOL_FLAG];
	const struct layout_number *shift = &ruby->layout->enumerators[E_RUBY_SPECIAL_SHIFT];
	const struct layout_number *type = &ruby->layout->enumerators[E_RUBY_T_SYMBOL];

	if (flag->present && shift->present && (value & 0xff) == (uint64_t)flag->value)
		return symbol_add(ruby, access, value >> shift->value, text);
	/* A Symbol that is an object, 2.2+. */
	if (!value_is_object(value) || !type->present || !layout_has(ruby->layout, F_symbol_fstr) ||
	    value_type(access, value) != (uint64_t)type->value) {
		access_fail(access, value);
		return false;
	}
	return value_append(text, access, value_string(access, access_member(access, value, F_symbol_fstr)));
}

/* How many serials an inner list of the symbol table has. */
static uint64_t entry_unit(const struct layout *layout)
{
	const struct layout_number *of_enum = &layout->enumerators[E_ID_ENTRY_UNIT];
	const struct layout_number *unit = of_enum->present ? of_enum : &layout->constants[C_ID_ENTRY_UNIT];

	return unit->present && unit->value > 0 ? (uint64_t)unit->value : ID_ENTRY_UNIT_UNOPTIMISED;
}

bool symbol_units_hold(const struct ruby *ruby, struct access *access)
{
	uint64_t words = access_enum(access, E_ID_ENTRY_SIZE), outer, elements, length;

	if (!layout_has(ruby->layout, F_symbols_ids) || layout_has(ruby->layout, F_symbol_entry_str) || words == 0 ||
	    value_array(access, access_member(access, ruby->symbols, F_symbols_ids), &outer) < 2)
		return !access->failed;
	length = value_array(access, access_word(access, outer), &elements);
	/* The Symbol of the last name, which comes after it, may never have been made. */
	return !access->failed && (length + words - 1) / words == entry_unit(ruby->layout);
}

struct bytes symbol_name(const struct ruby *ruby, struct access *access, uint64_t id)
{
	uint64_t unit = entry_unit(ruby->layout);
	uint64_t serial =
	    id > access_enum(access, E_tLAST_OP_ID) ? id >> access_enum(access, E_RUBY_ID_SCOPE_SHIFT) : id;
	uint64_t outer, count;

	if (ruby->symbols == 0 || id == 0)
		return none(access, ruby->symbols);
	if (!layout_has(ruby->layout, F_symbols_ids))
		return name_by_table(ruby, access, id);
	if (serial >= symbol_serials_end(access, ruby->symbols))
		return none(access, ruby->symbols);
	count = value_array(access, access_member(access, ruby->symbols, F_symbols_ids), &outer);
	if (serial / unit >= count)
		return none(access, ruby->symbols);
	return value_string(access, name_at(access, access_word(access, outer + serial / unit * 8), serial % unit));
}
