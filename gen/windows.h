/*
 * Torn windows: the code in which a stack is being changed. It is where the functions lie that fields.def calls
 * windows, both as functions of their own and wherever they were inlined.
 */
#ifndef RBDUMP_WINDOWS_H
#define RBDUMP_WINDOWS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "gen/types.h"
#include "gen/wanted.h"
#include "layout.h"

/*
 * Adds the windows in the code of one compilation unit to a layout.
 *   bias   added to the debug info's addresses to make them those of the ELF file
 * Afterwards windows_finish() is due. False if there is no memory, or if there are more than can be meant.
 */
bool windows_add(struct layout *layout, Dwarf_Die *unit, const struct wanted_table *table, uint64_t bias,
		 struct die_budget *budget);

/* Sorts a layout's windows and drops those that are there twice. */
void windows_finish(struct layout *layout);

#endif
