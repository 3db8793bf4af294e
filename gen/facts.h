/*
 * Finds what DWARF says about the wanted names (see gen/wanted.h). Makes one pass over the top-level entries of every C
 * unit, including partial units and type units.
 *
 * A struct may be defined in many units. The definition with the most wanted members is used, because an unrelated
 * struct of the same name has fewer wanted members. A member that fields.def marks as `required` counts more than any
 * number of optional members. If two definitions have equally many required members and equally many optional members,
 * a definition whose struct tag is the wanted name is preferred to a definition that has this name only through a
 * typedef. If this rule does not decide either, and the two definitions differ in size or in a wanted member, the
 * generator fails, because nothing shows which definition is Ruby's. The file fields.def can list several names for a
 * struct. If several of these names are defined, the definition that lacks the fewest required members is used. If
 * several definitions lack the same number of required members, the definition whose name is listed first is used. Units
 * that are not written in C are skipped, because the Rust code of YJIT and ZJIT has opaque structs with the names of
 * Ruby's structs.
 */
#ifndef RBDUMP_FACTS_H
#define RBDUMP_FACTS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "gen/types.h"
#include "gen/wanted.h"
#include "layout/layout.h"

/* A global variable, as the debug info of one compilation unit describes it. */
struct facts_variable {
	bool present;
	/* The name under which the variable was found: an index into the `names` of the variable's layout_spec. */
	uint8_t alternative;
	uint64_t address; /* the variable's address according to the debug info */
};

struct facts {
	struct layout *layout; /* has the sizes, members, enumerators, constants and functions that were found */
	struct facts_variable symbols[LAYOUT_SYMBOLS];

	/* Constants for which the debug info has an address in memory, but no value. */
	struct facts_variable constants[LAYOUT_CONSTANTS];
	uint64_t constant_sizes[LAYOUT_CONSTANTS];

	/* C compilation units whose code might contain torn windows. */
	Dwarf_Die *window_units;
	size_t nr_window_units;

	/* For messages: */
	unsigned int nr_units;	 /* number of compilation units, in all languages */
	unsigned int nr_c_units; /* number of compilation units in C */
	char *split_file;	 /* a .dwo file that was not found; NULL if no .dwo file is missing */
	char *producer;		 /* compiler of the unit that defines the struct of control frames */
	struct error *conflict;	 /* how two definitions contradict each other; NULL if there is no conflict */
};

/*
 * Makes one pass over all units. False if there is not enough memory, or if the budget is used up. If the budget is
 * used up, budget->steps is 0.
 *   ret    receives the facts; free them with facts_deinit(), even on failure
 */
bool facts_init(struct facts *ret, Dwarf *dwarf, const struct wanted_table *table, struct die_budget *budget);
void facts_deinit(struct facts *facts);

#endif
