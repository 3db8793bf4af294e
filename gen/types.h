/*
 * C types as DWARF describes them: sizes, and where members lie. Takes DWARF 2 to 5 as gcc and clang write it.
 *
 * DWARF may be hostile: chains of references are cut at a fixed length, lists of siblings must move forward, and all
 * steps together are counted against `struct die_budget`.
 */
#ifndef RBDUMP_TYPES_H
#define RBDUMP_TYPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* How many more entries may be looked at. At 0, every walk ends as if there were nothing more. */
struct die_budget {
	uint64_t steps;
};

/* Moves to the first child, or to the next sibling: false if there is none. */
bool die_first_child(Dwarf_Die *die, struct die_budget *budget, Dwarf_Die *ret);
bool die_next_sibling(Dwarf_Die *die, struct die_budget *budget);

/* DW_AT_name of the entry itself; NULL if it has none. */
const char *die_name(Dwarf_Die *die);

/* Value of an attribute that is an unsigned number; false if it is absent or no such number. */
bool die_number(Dwarf_Die *die, unsigned int attribute, uint64_t *ret);

/* The same, for one that may be negative. */
bool die_signed_number(Dwarf_Die *die, unsigned int attribute, int64_t *ret);

/*
 * Follows DW_AT_type, then typedefs, qualifiers and type signatures to the type that they stand for.
 * False if there is none, or if the chain does not end.
 */
bool die_type(Dwarf_Die *die, Dwarf_Die *ret);

/* The same for an entry that is a type itself. */
bool die_strip_type(Dwarf_Die *type, Dwarf_Die *ret);

/* Whether it is a struct or union that is defined here: not a mere declaration, and not of size 0. */
bool die_is_definition(Dwarf_Die *type);

/* A member as it lies in a struct. */
struct die_member {
	uint64_t bit;  /* its lowest bit, from the start of the struct, little-endian */
	uint64_t bits; /* its width if it is a bitfield, else 0 */
	uint64_t size; /* bytes of its type; 0 for a flexible array */
};

/*
 * Finds a member by its path (`as.heap.len`), members of anonymous structs and unions by their own name.
 * False if there is none.
 */
bool die_find_member(Dwarf_Die *type, const char *path, struct die_budget *budget, struct die_member *ret);

#endif
