/*
 * Torn windows: the code that changes a stack. fields.def lists the functions that contain this code. A function's
 * windows are its own code, and the code in each place where the function was inlined.
 */
#ifndef RBDUMP_WINDOWS_H
#define RBDUMP_WINDOWS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "gen/types.h"
#include "gen/wanted.h"
#include "layout/layout.h"

/*
 * Adds the windows in the code of one compilation unit to a layout. Call windows_finish() after the last compilation
 * unit.
 *   bias   address in the ELF file = address in the debug info + bias
 * Fails if out of memory, or with EXIT_FAILED if there are implausibly many windows.
 */
struct error *windows_add(struct layout *layout, Dwarf_Die *unit, const struct wanted_table *table, uint64_t bias,
			  struct die_budget *budget);

/* Sorts a layout's windows, and drops duplicates. */
void windows_finish(struct layout *layout);

#endif
