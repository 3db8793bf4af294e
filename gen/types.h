/*
 * Reads C types from DWARF: their sizes, and the positions of their members. Can read DWARF 2 to 5 as written by gcc
 * and clang.
 *
 * The DWARF of a file may be hostile. Therefore, this module limits the length of chains of references, and requires
 * each sibling to have a higher offset than the previous sibling. `struct die_budget` limits the total number of steps.
 */
#ifndef RBDUMP_TYPES_H
#define RBDUMP_TYPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * How many more DWARF entries may be read. When `steps` is 0, a function that gets this budget behaves as if there were
 * no more entries.
 */
struct die_budget {
	uint64_t steps;
};

/*
 * die_first_child() puts the first child of an entry into `ret`. die_next_sibling() replaces `die` with its next sibling.
 * False if there is no such entry, or if the budget is used up.
 */
bool die_first_child(Dwarf_Die *die, struct die_budget *budget, Dwarf_Die *ret);
bool die_next_sibling(Dwarf_Die *die, struct die_budget *budget);

/* The entry's own DW_AT_name; NULL if the entry has no name. */
const char *die_name(Dwarf_Die *die);

/* The value of an attribute, as an unsigned number. False if the attribute is absent, or is not an unsigned number. */
bool die_number(Dwarf_Die *die, unsigned int attribute, uint64_t *ret);

/* The value of an attribute, as a number that may be negative. False if the attribute is absent, or is not a number. */
bool die_signed_number(Dwarf_Die *die, unsigned int attribute, int64_t *ret);

/*
 * Finds the type of an entry: follows DW_AT_type, then typedefs, qualifiers and type signatures. False if the entry has
 * no type, or if this chain of references is too long.
 */
bool die_type(Dwarf_Die *die, Dwarf_Die *ret);

/* Whether an entry defines a struct or union: false for a declaration, and for a struct or union of size 0. */
bool die_is_definition(Dwarf_Die *type);

/* The position of a member in a struct. */
struct die_member {
	uint64_t bit;  /* position of the member's lowest bit, in bits from the start of the struct (little-endian) */
	uint64_t bits; /* width of a bitfield, in bits; 0 for a member that is not a bitfield */
	uint64_t size; /* size of the member's type, in bytes; 0 for a flexible array */
};

/*
 * Finds a member by its path (for example `as.heap.len`). Anonymous structs and unions do not appear in a path; only
 * their members do. False if there is no such member.
 */
bool die_find_member(Dwarf_Die *type, const char *path, struct die_budget *budget, struct die_member *ret);

#endif
