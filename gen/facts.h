/*
 * What DWARF says of the wanted names: one pass over the top level of every C unit, partial and type units included.
 *
 * A struct may be defined in many units. The definition counts that has the most of the members that are wanted, those
 * first that fields.def requires: a look-alike of the same name has less. Two such definitions that differ in a wanted
 * member are a conflict, and an error, for nothing says which of them is Ruby's. Of a struct's alternative names the
 * first counts under which it is complete. Units that are not C (Rust has opaque look-alikes of Ruby's structs: yjit
 * and zjit) are passed over.
 */
#ifndef RBDUMP_FACTS_H
#define RBDUMP_FACTS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/types.h"
#include "gen/wanted.h"
#include "layout.h"

/* A global as a unit describes it. */
struct facts_variable {
	bool present;
	uint8_t alternative; /* which of its spec's names it has, from 0 */
	uint64_t address;    /* as in the debug info */
};

struct facts {
	struct layout *layout; /* sizes, members, enumerators, constants, functions */
	struct facts_variable symbols[LAYOUT_SYMBOLS];

	/* Constants that are variables in memory, not values in the debug info. */
	struct facts_variable constants[LAYOUT_CONSTANTS];
	uint64_t constant_sizes[LAYOUT_CONSTANTS];

	/* C units whose code may hold windows. */
	Dwarf_Die *window_units;
	size_t nr_window_units;

	/* For messages. */
	unsigned int nr_units;	 /* compilation units of any language */
	unsigned int nr_c_units; /* of them, those in C */
	char *split_file;	 /* a .dwo file that was not found; NULL if none is missing */
	char *producer;		 /* compiler of the unit with the control frame */
	char *conflict;		 /* a sentence, if two definitions contradict each other */
};

/*
 * Makes the pass.
 *   ret    to be given to facts_deinit(), also if this fails
 * False if memory or the budget is used up (budget->steps is then 0).
 */
bool facts_init(struct facts *ret, Dwarf *dwarf, const struct wanted_table *table, struct die_budget *budget);
void facts_deinit(struct facts *facts);

#endif
