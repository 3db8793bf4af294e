#include "gen/types.h"

#include <dwarf.h>
#include <string.h>

#define MAX_CHAIN 32 /* typedefs and qualifiers on the way to a type */
#define MAX_DEPTH 16 /* nested structs, arrays of arrays */

bool die_first_child(Dwarf_Die *die, struct die_budget *budget, Dwarf_Die *ret)
{
	if (!budget->steps)
		return false;
	budget->steps--;
	return dwarf_child(die, ret) == 0;
}

bool die_next_sibling(Dwarf_Die *die, struct die_budget *budget)
{
	const void *before = die->addr;

	if (!budget->steps)
		return false;
	budget->steps--;
	/* A hostile DW_AT_sibling may point backward: the loop would never end. */
	return dwarf_siblingof(die, die) == 0 && (const char *)die->addr > (const char *)before;
}

const char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, DW_AT_name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

bool die_number(Dwarf_Die *die, unsigned int attribute, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, attribute, &attr) || dwarf_formudata(&attr, &value) != 0)
		return false;
	*ret = value;
	return true;
}

bool die_signed_number(Dwarf_Die *die, unsigned int attribute, int64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Sword sword;
	Dwarf_Word word;

	if (!dwarf_attr(die, attribute, &attr))
		return false;
	/* DWARF does not say if the fixed sizes are signed. Compilers use them for what is not negative. */
	switch (dwarf_whatform(&attr)) {
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
		if (dwarf_formsdata(&attr, &sword) != 0)
			return false;
		*ret = sword;
		return true;
	default:
		if (dwarf_formudata(&attr, &word) != 0)
			return false;
		*ret = (int64_t)word;
		return true;
	}
}

/* Follows an attribute that is a reference to another entry. */
static bool follow(Dwarf_Die *die, unsigned int attribute, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, attribute, &attr) && dwarf_formref_die(&attr, ret);
}

/* The same as die_type() for an entry that is a type itself. */
static bool strip_type(Dwarf_Die *type, Dwarf_Die *ret)
{
	*ret = *type;
	for (int i = 0; i < MAX_CHAIN; i++) {
		switch (dwarf_tag(ret)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (!follow(ret, DW_AT_type, ret))
				return false;
			break;
		default:
			/* With -fdebug-types-section, this is a declaration that refers to the type's own unit. */
			if (dwarf_hasattr(ret, DW_AT_signature) && follow(ret, DW_AT_signature, ret))
				break;
			return true;
		}
	}
	return false;
}

bool die_type(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Die type;

	return follow(die, DW_AT_type, &type) && strip_type(&type, ret);
}

bool die_is_definition(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);
	Dwarf_Attribute attribute;
	bool declaration;
	uint64_t size;

	if (tag != DW_TAG_structure_type && tag != DW_TAG_union_type)
		return false;
	if (dwarf_attr(type, DW_AT_declaration, &attribute) &&
	    (dwarf_formflag(&attribute, &declaration) != 0 || declaration))
		return false;
	return die_number(type, DW_AT_byte_size, &size) && size > 0;
}

static bool array_size(Dwarf_Die *array, struct die_budget *budget, int depth, uint64_t *ret);

/* The size of a type that comes from die_type(). */
static bool type_size(Dwarf_Die *type, struct die_budget *budget, int depth, uint64_t *ret)
{
	if (dwarf_tag(type) == DW_TAG_array_type)
		return depth < MAX_DEPTH && array_size(type, budget, depth + 1, ret);
	if (die_number(type, DW_AT_byte_size, ret))
		return true;
	/* clang omits the size of pointers. */
	Dwarf_Die unit;
	uint8_t address_size;

	if (dwarf_tag(type) != DW_TAG_pointer_type || !dwarf_diecu(type, &unit, &address_size, NULL))
		return false;
	*ret = address_size;
	return true;
}

static bool array_size(Dwarf_Die *array, struct die_budget *budget, int depth, uint64_t *ret)
{
	Dwarf_Die element, range;
	uint64_t size;

	if (!die_type(array, &element) || !type_size(&element, budget, depth, &size))
		return false;
	if (!die_first_child(array, budget, &range))
		return false;
	do {
		uint64_t count = 0;
		int64_t upper;

		if (dwarf_tag(&range) != DW_TAG_subrange_type)
			continue;
		/* A flexible array has neither. In C, the lowest index of an array is 0. */
		if (!die_number(&range, DW_AT_count, &count) && die_signed_number(&range, DW_AT_upper_bound, &upper) &&
		    upper >= 0)
			count = (uint64_t)upper + 1;
		if (__builtin_mul_overflow(size, count, &size))
			return false;
	} while (die_next_sibling(&range, budget));
	*ret = size;
	return true;
}

/* The byte offset of a member. A member of a union may have none: it is 0 then. */
static bool member_location(Dwarf_Die *member, uint64_t *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;
	Dwarf_Op *ops;
	size_t length;

	*ret = 0;
	if (!dwarf_attr(member, DW_AT_data_member_location, &attribute))
		return true;
	if (dwarf_formudata(&attribute, &value) == 0) {
		*ret = value;
		return true;
	}
	/* DWARF 2 has an expression here. */
	if (dwarf_getlocation(&attribute, &ops, &length) != 0 || length != 1 || ops[0].atom != DW_OP_plus_uconst)
		return false;
	*ret = ops[0].number;
	return true;
}

/* The place of a member, from the start of the struct that directly contains it. */
static bool member_place(Dwarf_Die *member, struct die_budget *budget, struct die_member *ret)
{
	uint64_t location, offset, storage;
	Dwarf_Die type;

	*ret = (struct die_member){0};
	if (!die_type(member, &type) || !type_size(&type, budget, 0, &ret->size))
		return false;
	if (!member_location(member, &location) || location > UINT32_MAX || ret->size > UINT32_MAX)
		return false;
	ret->bit = location * 8;
	if (!die_number(member, DW_AT_bit_size, &ret->bits))
		return true;
	if (ret->bits == 0 || ret->bits > 64)
		return false;
	if (die_number(member, DW_AT_data_bit_offset, &offset)) {
		if (offset > UINT32_MAX)
			return false;
		ret->bit += offset;
		return true;
	}
	/* DWARF 2 and 3 count from the highest bit of a storage unit, whose size may be given here. */
	if (!die_number(member, DW_AT_bit_offset, &offset))
		return true;
	if (!die_number(member, DW_AT_byte_size, &storage))
		storage = ret->size;
	if (storage > 16 || offset > storage * 8 || offset + ret->bits > storage * 8)
		return false;
	ret->bit += storage * 8 - offset - ret->bits;
	return true;
}

/* The structs around the one that is searched. */
struct scope {
	const void *type;
	const struct scope *outer; /* NULL for the outermost */
	int depth;
};

/* Whether a struct is inside of itself. No valid struct is, so it is not searched again. */
static bool is_within_itself(const struct scope *scope)
{
	for (const struct scope *outer = scope->outer; outer; outer = outer->outer) {
		if (outer->type == scope->type)
			return true;
	}
	return false;
}

static bool find(Dwarf_Die *type, const char *path, struct die_budget *budget, const struct scope *outer_scope,
		 struct die_member *ret)
{
	const struct scope scope = {type->addr, outer_scope, outer_scope ? outer_scope->depth + 1 : 0};
	size_t length = strcspn(path, ".");
	Dwarf_Die member, inner;

	if (scope.depth >= MAX_DEPTH || is_within_itself(&scope) || !die_first_child(type, budget, &member))
		return false;
	do {
		struct die_member outer;

		if (dwarf_tag(&member) != DW_TAG_member)
			continue;
		const char *name = die_name(&member);

		if (name && (strncmp(name, path, length) != 0 || name[length] != '\0'))
			continue;
		const char *rest = name ? path + length + (path[length] == '.') : path;

		if (!*rest)
			return member_place(&member, budget, ret);
		/* Goes into the named member; or into an anonymous one, which may have the name. */
		if (!die_type(&member, &inner) || !die_is_definition(&inner) ||
		    !find(&inner, rest, budget, &scope, ret)) {
			if (name)
				return false;
			continue;
		}
		if (!member_place(&member, budget, &outer) || outer.bits)
			return false;
		ret->bit += outer.bit;
		return true;
	} while (die_next_sibling(&member, budget));
	return false;
}

bool die_find_member(Dwarf_Die *type, const char *path, struct die_budget *budget, struct die_member *ret)
{
	return find(type, path, budget, NULL, ret);
}
