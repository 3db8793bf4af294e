/*
 * Finds torn windows: the ranges of Ruby's machine code that change a VM stack. The file fields.def lists the functions
 * that change a VM stack. Both the code of such a function and each inlined copy of this code are torn windows.
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
 * Finds the windows in one compilation unit, and adds them to a layout. Call windows_finish() after the last
 * compilation unit.
 *   bias   an address of code in the ELF file, minus the address of the same code in the debug info
 * Fails if there is not enough memory. Fails with EXIT_FAILED if there are implausibly many windows.
 */
struct error *windows_add(struct layout *layout, Dwarf_Die *unit, const struct wanted_table *table, uint64_t bias,
			  struct die_budget *budget);

/* Sorts a layout's windows, and drops duplicates. */
void windows_finish(struct layout *layout);

#endif
