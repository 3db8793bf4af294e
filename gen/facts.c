#include "gen/facts.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "layout/words.h"

#define MAX_IMPORTS 16 /* units that import units */

/* One definition of a struct. */
struct candidate {
	bool present;
	unsigned int missing; /* how many required members it lacks */
	unsigned int absent;  /* twice the number of optional members that it lacks; plus 1 if found by a typedef */
	int64_t size;
	struct layout_member *members; /* of LAYOUT_MEMBERS; only the struct's own are used */
	char *unit;
	struct error *conflict; /* with an equally good definition */
};

/* A unit that has been walked. An imported unit may be met again. */
struct visited {
	const void *address;
	bool has_window;
};

struct walk {
	struct facts *facts;
	const struct wanted_table *table;
	struct die_budget *budget;
	struct candidate *candidates; /* by struct, then alternative */
	unsigned int first_candidate[LAYOUT_STRUCTS + 1];
	char *enumerator_units[LAYOUT_ENUMERATORS]; /* where each was found */
	char *constant_units[LAYOUT_CONSTANTS];
	struct visited *visited;
	size_t nr_visited;
	Dwarf_Die *c_units;
	size_t nr_c_units;
	bool has_partial; /* there are partial units: dwz has made them */
	const char *unit; /* name of the compilation unit that is being walked */
	bool no_memory;
};

static unsigned int alternatives(const struct layout_spec *spec)
{
	unsigned int count = 0;

	while (spec->names[count])
		count++;
	return count;
}

/* Takes the error; NULL is fine. */
static void note_conflict(struct walk *walk, struct error *conflict)
{
	if (walk->facts->conflict)
		error_destroy(conflict);
	else
		walk->facts->conflict = conflict;
}

/* Gives back a copy of a text; NULL, that there was no memory for it, is noted. */
static char *noted(struct walk *walk, char *copy)
{
	walk->no_memory |= !copy;
	return copy;
}

/* ---- structs */

/* Converts a member's place to bytes and bits; false if a layout cannot hold it. */
static bool to_layout_member(const struct die_member *found, struct layout_member *ret)
{
	uint64_t offset = found->bit / 8, shift = found->bit % 8;
	uint64_t size = found->bits ? (shift + found->bits + 7) / 8 : found->size;

	if (offset > UINT32_MAX || size > UINT32_MAX || (found->bits ? size > 8 : shift != 0))
		return false;
	*ret = (struct layout_member){
	    .present = true,
	    .shift = (uint8_t)shift,
	    .width = (uint8_t)found->bits,
	    .offset = (uint32_t)offset,
	    .size = (uint32_t)size,
	};
	return true;
}

/* Looks up all wanted members of a struct under one of its names. */
static void measure(struct walk *walk, Dwarf_Die *type, int id, unsigned int alternative, struct candidate *ret)
{
	size_t prefix = strlen(layout_struct_specs[id].names[alternative]) + 1;

	for (size_t m = 0; m < LAYOUT_MEMBERS; m++) {
		const struct layout_spec *spec = &layout_member_specs[m];

		if (spec->parent != id)
			continue;
		unsigned int paths = alternatives(spec) / alternatives(&layout_struct_specs[id]);

		for (unsigned int n = alternative * paths; n < (alternative + 1) * paths; n++) {
			struct die_member found;

			if (die_find_member(type, spec->names[n] + prefix, walk->budget, &found) &&
			    to_layout_member(&found, &ret->members[m])) {
				ret->members[m].alternative = (uint8_t)n;
				break;
			}
		}
		if (!ret->members[m].present && spec->required)
			ret->missing++;
		else if (!ret->members[m].present)
			ret->absent += 2;
	}
}

/* In what two definitions of a struct differ: a member's name, or "its size"; NULL if they agree. */
static const char *difference(const struct candidate *a, const struct candidate *b, int id)
{
	if (a->size != b->size)
		return "its size";
	for (size_t m = 0; m < LAYOUT_MEMBERS; m++) {
		const struct layout_member *x = &a->members[m], *y = &b->members[m];

		if (layout_member_specs[m].parent == id &&
		    (x->present != y->present || x->offset != y->offset || x->size != y->size || x->shift != y->shift ||
		     x->width != y->width || x->alternative != y->alternative))
			return layout_member_specs[m].names[x->present ? x->alternative : y->alternative];
	}
	return NULL;
}

static void candidate_deinit(struct candidate *candidate)
{
	free(candidate->members);
	free(candidate->unit);
	error_destroy(candidate->conflict);
}

/* Below 0 if the first has more wanted members, 0 if both have equally many. */
static int compare(const struct candidate *a, const struct candidate *b)
{
	if (a->missing != b->missing)
		return a->missing < b->missing ? -1 : 1;
	return a->absent < b->absent ? -1 : a->absent > b->absent;
}

static void add_struct(struct walk *walk, Dwarf_Die *type, const struct wanted *wanted, bool by_typedef)
{
	struct candidate *best =
	    &walk->candidates[walk->first_candidate[wanted->id] + (unsigned int)wanted->alternative];
	struct candidate found = {.present = true};
	uint64_t size;

	if (!die_number(type, DW_AT_byte_size, &size) || size > INT32_MAX)
		return;
	found.size = (int64_t)size;
	found.members = calloc(LAYOUT_MEMBERS, sizeof(*found.members));
	if (!found.members) {
		walk->no_memory = true;
		return;
	}
	measure(walk, type, wanted->id, (unsigned int)wanted->alternative, &found);
	found.absent += by_typedef; /* of equals, one found by its tag counts more */
	int order = best->present ? compare(&found, best) : -1;

	if (order < 0) {
		found.unit = noted(walk, strdup(walk->unit));
		candidate_deinit(best);
		*best = found;
		return;
	}
	const char *differs = order == 0 && !best->conflict ? difference(best, &found, wanted->id) : NULL;

	if (differs && best->unit)
		best->conflict = error_create(EXIT_FAILED, "%s is defined differently in %s and %s (%s differs)",
					      wanted->name, best->unit, walk->unit, differs);
	candidate_deinit(&found);
}

static void visit_struct(struct walk *walk, Dwarf_Die *die)
{
	const char *name = die_name(die);
	const struct wanted *wanted = name ? wanted_find(walk->table, WANTED_STRUCT, name) : NULL;

	if (wanted && die_is_definition(die))
		add_struct(walk, die, wanted, false);
}

static void visit_typedef(struct walk *walk, Dwarf_Die *die)
{
	const char *name = die_name(die);
	const struct wanted *wanted = name ? wanted_find(walk->table, WANTED_STRUCT, name) : NULL;
	Dwarf_Die type;

	if (wanted && die_type(die, &type) && die_is_definition(&type))
		add_struct(walk, &type, wanted, true);
}

/* Puts the chosen definitions into the layout. */
static void choose_structs(struct walk *walk)
{
	struct layout *layout = walk->facts->layout;

	for (int id = 0; id < LAYOUT_STRUCTS; id++) {
		struct candidate *chosen = NULL;
		unsigned int alternative = 0;

		for (unsigned int c = walk->first_candidate[id]; c < walk->first_candidate[id + 1]; c++) {
			struct candidate *candidate = &walk->candidates[c];

			if (candidate->present && (!chosen || candidate->missing < chosen->missing)) {
				chosen = candidate;
				alternative = c - walk->first_candidate[id];
			}
		}
		if (!chosen)
			continue;
		layout->sizes[id] = (struct layout_number){.present = true, .value = chosen->size};
		layout->struct_alternative[id] = (uint8_t)alternative;
		for (size_t m = 0; m < LAYOUT_MEMBERS; m++) {
			if (layout_member_specs[m].parent == id)
				layout->members[m] = chosen->members[m];
		}
		note_conflict(walk, chosen->conflict);
		chosen->conflict = NULL;
	}
}

/* ---- enumerators, variables, functions */

static void set_number(struct walk *walk, struct layout_number *number, char **unit, const char *name, int64_t value)
{
	if (!number->present) {
		*number = (struct layout_number){.present = true, .value = value};
		*unit = noted(walk, strdup(walk->unit));
	} else if (number->value != value && *unit) {
		note_conflict(walk, error_create(EXIT_FAILED, "%s is %" PRId64 " in %s and %" PRId64 " in %s", name,
						 number->value, *unit, value, walk->unit));
	}
}

static void visit_enumeration(struct walk *walk, Dwarf_Die *die)
{
	Dwarf_Die child;

	if (!die_first_child(die, walk->budget, &child))
		return;
	do {
		const char *name = die_name(&child);
		const struct wanted *wanted = name ? wanted_find(walk->table, WANTED_ENUMERATOR, name) : NULL;
		int64_t value;

		if (wanted && die_signed_number(&child, DW_AT_const_value, &value))
			set_number(walk, &walk->facts->layout->enumerators[wanted->id],
				   &walk->enumerator_units[wanted->id], name, value);
	} while (die_next_sibling(&child, walk->budget));
}

/* A variable's address, if it has a fixed one. */
static bool variable_address(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t length;

	if (!dwarf_attr(die, DW_AT_location, &attribute) || dwarf_getlocation(&attribute, &ops, &length) != 0 ||
	    length != 1 || ops[0].atom != DW_OP_addr)
		return false;
	*ret = ops[0].number;
	return true;
}

static void visit_variable(struct walk *walk, Dwarf_Die *die)
{
	struct facts *facts = walk->facts;
	const char *name = dwarf_diename(die); /* also of what DW_AT_specification refers to */
	uint64_t location, size;
	int64_t value;
	Dwarf_Die type;

	if (!name)
		return;
	const struct wanted *symbol = wanted_find(walk->table, WANTED_SYMBOL, name);
	const struct wanted *constant = wanted_find(walk->table, WANTED_CONSTANT, name);

	if (symbol && variable_address(die, &location))
		facts->symbols[symbol->id] = (struct facts_variable){
		    .present = true, .alternative = (uint8_t)symbol->alternative, .address = location};
	if (!constant)
		return;
	if (die_signed_number(die, DW_AT_const_value, &value)) {
		set_number(walk, &facts->layout->constants[constant->id], &walk->constant_units[constant->id], name,
			   value);
	} else if (variable_address(die, &location) && die_type(die, &type) &&
		   die_number(&type, DW_AT_byte_size, &size)) {
		facts->constants[constant->id] = (struct facts_variable){.present = true, .address = location};
		facts->constant_sizes[constant->id] = size;
	}
}

/* Returns whether it is a function whose windows are wanted, or one that may have such a function inlined. */
static bool visit_function(struct walk *walk, Dwarf_Die *die)
{
	const char *name = die_name(die);
	Dwarf_Attribute attribute;

	/* Link-time optimisation puts the code of all units into units of its own, which refer to the others. */
	if (!name)
		return dwarf_attr(die, DW_AT_abstract_origin, &attribute) &&
		       dwarf_whatform(&attribute) == DW_FORM_ref_addr;
	if (dwarf_attr(die, DW_AT_declaration, &attribute))
		return false;
	const struct wanted *function = wanted_find(walk->table, WANTED_FUNCTION, name);

	if (function)
		walk->facts->layout->functions[function->id] = true;
	return wanted_find(walk->table, WANTED_WINDOW, name) != NULL;
}

/* ---- units */

static struct visited *find_visited(struct walk *walk, const void *address)
{
	for (size_t i = 0; i < walk->nr_visited; i++)
		if (walk->visited[i].address == address)
			return &walk->visited[i];
	return NULL;
}

static bool walk_unit(struct walk *walk, Dwarf_Die *unit, int depth);

/* Adds a unit. Returns its index; SIZE_MAX if there is not enough memory. */
static size_t add_visited(struct walk *walk, const void *address)
{
	if (!array_make_room_for_one(walk->visited, walk->nr_visited)) {
		walk->no_memory = true;
		return SIZE_MAX;
	}
	walk->visited[walk->nr_visited] = (struct visited){.address = address};
	return walk->nr_visited++;
}

/*
 * Walks a unit that another one imports. dwz moves there what several units share; link-time optimisation imports
 * whole units.
 */
static bool walk_import(struct walk *walk, Dwarf_Die *die, int depth)
{
	Dwarf_Attribute attribute;
	Dwarf_Die unit;

	if (depth >= MAX_IMPORTS || !dwarf_attr(die, DW_AT_import, &attribute) || !dwarf_formref_die(&attribute, &unit))
		return false;
	struct visited *visited = find_visited(walk, unit.addr);

	if (visited)
		return visited->has_window;
	size_t index = add_visited(walk, unit.addr);

	if (index == SIZE_MAX)
		return false;
	bool has_window = walk_unit(walk, &unit, depth + 1);

	walk->visited[index].has_window = has_window;
	return has_window;
}

/* Marks the units that a unit of another language imports as visited, if no C unit imports them. */
static void pass_over_imports(struct walk *walk, Dwarf_Die *unit, int depth)
{
	Dwarf_Attribute attribute;
	Dwarf_Die child, imported;

	if (depth >= MAX_IMPORTS || !die_first_child(unit, walk->budget, &child))
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_imported_unit && dwarf_attr(&child, DW_AT_import, &attribute) &&
		    dwarf_formref_die(&attribute, &imported) && !find_visited(walk, imported.addr) &&
		    add_visited(walk, imported.addr) != SIZE_MAX)
			pass_over_imports(walk, &imported, depth + 1);
	} while (die_next_sibling(&child, walk->budget));
}

/*
 * Walks the top level of a unit. Returns whether it, or a unit that it imports, has a function whose windows are
 * wanted.
 */
static bool walk_unit(struct walk *walk, Dwarf_Die *unit, int depth)
{
	bool has_window = false;
	Dwarf_Die child;

	if (!die_first_child(unit, walk->budget, &child))
		return false;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			visit_struct(walk, &child);
			break;
		case DW_TAG_typedef:
			visit_typedef(walk, &child);
			break;
		case DW_TAG_enumeration_type:
			visit_enumeration(walk, &child);
			break;
		case DW_TAG_variable:
			visit_variable(walk, &child);
			break;
		case DW_TAG_subprogram:
			has_window |= visit_function(walk, &child);
			break;
		case DW_TAG_imported_unit:
			has_window |= walk_import(walk, &child, depth);
			break;
		default:
			break;
		}
	} while (die_next_sibling(&child, walk->budget));
	return has_window;
}

static bool is_c(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case 0x2c: /* DW_LANG_C17, not in elfutils 0.188's dwarf.h */
	case 0x3e: /* DW_LANG_C23 */
		return true;
	default:
		return false;
	}
}

static void add_unit(struct walk *walk, Dwarf_Die **units, size_t *count, const Dwarf_Die *unit)
{
	if (array_make_room_for_one(*units, *count))
		(*units)[(*count)++] = *unit;
	else
		walk->no_memory = true;
}

static void note_split_unit(struct walk *walk, Dwarf_Die *unit)
{
	struct facts *facts = walk->facts;
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (facts->split_file)
		return;
	if (dwarf_attr(unit, DW_AT_dwo_name, &attribute) || dwarf_attr(unit, DW_AT_GNU_dwo_name, &attribute))
		name = dwarf_formstring(&attribute);
	facts->split_file = noted(walk, strdup(name ? name : "without a name"));
}

/* The compiler's name and options, taken from the unit that first defined the control frame. */
static void note_producer(struct walk *walk, Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;
	const char *producer;
	bool present = false;

	for (unsigned int c = walk->first_candidate[S_cfp]; c < walk->first_candidate[S_cfp + 1]; c++)
		present |= walk->candidates[c].present;
	if (walk->facts->producer || !present || !dwarf_attr(unit, DW_AT_producer, &attribute))
		return;
	producer = dwarf_formstring(&attribute);
	if (producer && *producer)
		walk->facts->producer = noted(walk, layout_text(producer, 900));
}

static void walk_units(struct walk *walk, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit, split;
	uint8_t unit_type;

	while (walk->budget->steps && dwarf_get_units(dwarf, cu, &cu, NULL, &unit_type, &unit, &split) == 0) {
		Dwarf_Die *content = &unit;

		walk->facts->nr_units++;
		if (unit_type == DW_UT_skeleton) {
			if (!split.addr) {
				note_split_unit(walk, &unit);
				continue;
			}
			content = &split;
		}
		/* Partial units are walked where they are imported, because only then their language is known. */
		walk->has_partial |= dwarf_tag(content) == DW_TAG_partial_unit;
		if (dwarf_tag(content) == DW_TAG_partial_unit || !is_c(content))
			continue;
		const char *name = die_name(content);

		walk->unit = name ? name : "a unit without a name";
		add_unit(walk, &walk->c_units, &walk->nr_c_units, content);
		if (walk_unit(walk, content, 0))
			add_unit(walk, &walk->facts->window_units, &walk->facts->nr_window_units, content);
		note_producer(walk, content);
	}
}

static void pass_over_other_languages(struct walk *walk, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (walk->budget->steps && dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0)
		if (dwarf_tag(&unit) == DW_TAG_compile_unit && !is_c(&unit))
			pass_over_imports(walk, &unit, 0);
}

/*
 * Walks partial units that no unit imports: dwz makes them for what is referred to only from inside of functions,
 * also in its common file. Returns whether one has a function whose windows are wanted: then any unit may have it
 * inlined.
 */
static bool walk_partial_units(struct walk *walk, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	bool has_window = false;

	walk->unit = "a partial unit";
	while (dwarf && walk->budget->steps && dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0)
		if (dwarf_tag(&unit) == DW_TAG_partial_unit && !find_visited(walk, unit.addr))
			has_window |= walk_unit(walk, &unit, 0);
	return has_window;
}

/* Any C unit may have windows: moves the list of all C units to window_units. */
static void take_all_for_windows(struct walk *walk)
{
	free(walk->facts->window_units);
	walk->facts->window_units = walk->c_units;
	walk->facts->nr_window_units = walk->nr_c_units;
	walk->c_units = NULL;
}

static void walk_what_is_not_imported(struct walk *walk, Dwarf *dwarf)
{
	bool has_window;

	pass_over_other_languages(walk, dwarf);
	has_window = walk_partial_units(walk, dwarf);
	has_window |= walk_partial_units(walk, dwarf_getalt(dwarf));
	if (has_window)
		take_all_for_windows(walk);
}

bool facts_init(struct facts *ret, Dwarf *dwarf, const struct wanted_table *table, struct die_budget *budget)
{
	struct walk walk = {.facts = ret, .table = table, .budget = budget};
	unsigned int candidates = 0;

	memset(ret, 0, sizeof(*ret));
	for (int id = 0; id < LAYOUT_STRUCTS; id++) {
		walk.first_candidate[id] = candidates;
		candidates += alternatives(&layout_struct_specs[id]);
	}
	walk.first_candidate[LAYOUT_STRUCTS] = candidates;
	ret->layout = layout_create();
	walk.candidates = calloc(candidates, sizeof(*walk.candidates));
	if (!ret->layout || !walk.candidates) {
		free(walk.candidates);
		return false;
	}
	walk_units(&walk, dwarf);
	if (walk.has_partial || dwarf_getalt(dwarf))
		walk_what_is_not_imported(&walk, dwarf);
	choose_structs(&walk);

	ret->nr_c_units = (unsigned int)walk.nr_c_units;
	for (unsigned int c = 0; c < candidates; c++)
		candidate_deinit(&walk.candidates[c]);
	free(walk.candidates);
	for (size_t i = 0; i < LAYOUT_ENUMERATORS; i++)
		free(walk.enumerator_units[i]);
	for (size_t i = 0; i < LAYOUT_CONSTANTS; i++)
		free(walk.constant_units[i]);
	free(walk.visited);
	free(walk.c_units);
	return !walk.no_memory && budget->steps > 0;
}

void facts_deinit(struct facts *facts)
{
	layout_destroy(facts->layout);
	free(facts->window_units);
	free(facts->split_file);
	free(facts->producer);
	error_destroy(facts->conflict);
}
