/*
 * What debug info says of an address: the functions inlined into each other there, and the line of source.
 *
 * The debug info may be hostile: how deep and how far it is followed is bounded.
 */
#ifndef RBDUMP_DEBUG_INFO_H
#define RBDUMP_DEBUG_INFO_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Finds the unit of code that an address, as in the debug info, lies in: by the index of addresses, or among all units,
 * since not every compiler writes an index (rustc does not).
 */
bool debug_info_unit(Dwarf *dwarf, uint64_t address, Dwarf_Die *ret);

/*
 * Finds the functions at an address of a unit, the innermost first, the one that has the code last.
 *   ret, room  receive their entries; if there are more, those just before the last are left out
 * Returns how many.
 */
size_t debug_info_functions(Dwarf_Die *unit, uint64_t address, Dwarf_Die *ret, size_t room);

/* A function's name: as it is linked if the language has such names (Rust, C++). NULL if it has none. */
const char *debug_info_name(Dwarf_Die *function);

/* A line of source. */
struct debug_info_line {
	const char *file; /* owned by the Dwarf; NULL if not known */
	int number;	  /* 0 if not known */
};

/* The line that an address of a unit belongs to: the one that gdb's `info line` tells. */
struct debug_info_line debug_info_line(Dwarf_Die *unit, uint64_t address);

/* The line that an inlined function was called at. */
struct debug_info_line debug_info_call(Dwarf_Die *unit, Dwarf_Die *inlined);

/* The folder that a unit's relative files are relative to; NULL if not known. */
const char *debug_info_folder(Dwarf_Die *unit);

#endif
