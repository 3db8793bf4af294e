/*
 * Looks up an address in debug info: finds the functions at the address (also inlined functions), and the source line.
 *
 * The debug info may be hostile, so the depth and the length of each search are bounded.
 */
#ifndef RBDUMP_DEBUG_INFO_H
#define RBDUMP_DEBUG_INFO_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Finds the compilation unit of an address. `address` is an address in the debug info, not in the memory of the target.
 * The function first looks up the address in the index of addresses (.debug_aranges). If the index does not contain the
 * address, the function searches all units, because some compilers (rustc) do not write an index. Returns false if no
 * unit contains the address.
 */
bool debug_info_unit(Dwarf *dwarf, uint64_t address, Dwarf_Die *ret);

/*
 * Finds the functions at an address in a compilation unit. The innermost function comes first. The last function is not
 * inlined; all other functions are inlined into it.
 *   ret, room  `ret` receives at most `room` functions. If more functions are at the address, the outermost inlined
 *              functions are omitted
 * Returns the number of functions in `ret`.
 */
size_t debug_info_functions(Dwarf_Die *unit, uint64_t address, Dwarf_Die *ret, size_t room);

/*
 * Returns the linkage name of a function if the language has linkage names (Rust, C++), otherwise the name of the
 * function. Returns NULL if the function has no name. The string belongs to the Dwarf object.
 */
const char *debug_info_name(Dwarf_Die *function);

/* A line of source code. */
struct debug_info_line {
	const char *file; /* belongs to the Dwarf object; NULL if not known */
	int number;	  /* line number; 0 if not known */
};

/* The source line of an address in a compilation unit, as gdb's `info line` shows it. */
struct debug_info_line debug_info_line(Dwarf_Die *unit, uint64_t address);

/* The line at which an inlined function was called. */
struct debug_info_line debug_info_call(Dwarf_Die *unit, Dwarf_Die *inlined);

/*
 * The base folder of the relative paths in a compilation unit; NULL if not known. The string belongs to the Dwarf
 * object.
 */
const char *debug_info_folder(Dwarf_Die *unit);

#endif
