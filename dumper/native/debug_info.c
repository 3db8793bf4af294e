#include "native/debug_info.h"

#include <dwarf.h>
#include <string.h>

#define MAX_DEPTH 256	     /* nested scopes */
#define MAX_STEPS (1u << 20) /* entries that are looked at for one address; the largest unit of Ruby 3.4 has 90,000 */

bool debug_info_unit(Dwarf *dwarf, uint64_t address, Dwarf_Die *ret)
{
	Dwarf_CU *unit = NULL;
	unsigned int steps = MAX_STEPS;
	uint8_t type;

	if (dwarf_addrdie(dwarf, address, ret) && dwarf_haspc(ret, address) > 0)
		return true;
	while (steps-- > 0 && dwarf_get_units(dwarf, unit, &unit, NULL, &type, ret, NULL) == 0)
		if (type == DW_UT_compile && dwarf_haspc(ret, address) > 0)
			return true;
	return false;
}

/* ---- functions */

struct search {
	uint64_t address;
	bool is_c; /* the unit is in C: no function is inside a type */
	unsigned int steps;
	Dwarf_Die *functions; /* the outermost first */
	size_t count, room;
};

/* Whether entries of that tag contain functions, but have no code themselves. */
static bool holds_functions(const struct search *search, int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
		return true;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return !search->is_c;
	default:
		return false;
	}
}

static bool has_code(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return true;
	default:
		return false;
	}
}

static void add(struct search *search, const Dwarf_Die *function)
{
	/* Keeps the outermost one and the innermost ones. */
	if (search->count == search->room) {
		memmove(&search->functions[1], &search->functions[2], (search->room - 2) * sizeof(*function));
		search->count--;
	}
	search->functions[search->count++] = *function;
}

/* Searches an entry, from outside to inside, for the scopes of the address. Returns whether it found one. */
static bool descend(struct search *search, Dwarf_Die *from, int depth)
{
	Dwarf_Die child;

	if (depth == MAX_DEPTH || dwarf_child(from, &child) != 0)
		return false;
	do {
		int tag = dwarf_tag(&child);

		if (search->steps == 0)
			return false;
		search->steps--;
		if (holds_functions(search, tag) && descend(search, &child, depth + 1))
			return true;
		if (!has_code(tag) || dwarf_haspc(&child, search->address) <= 0)
			continue;
		if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
			add(search, &child);
		descend(search, &child, depth + 1);
		return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

size_t debug_info_functions(Dwarf_Die *unit, uint64_t address, Dwarf_Die *ret, size_t room)
{
	int language = dwarf_srclang(unit);
	struct search search = {
	    .address = address,
	    .is_c =
		language == DW_LANG_C || language == DW_LANG_C89 || language == DW_LANG_C99 || language == DW_LANG_C11,
	    .steps = MAX_STEPS,
	    .functions = ret,
	    .room = room,
	};

	descend(&search, unit, 0);
	for (size_t i = 0; i < search.count / 2; i++) {
		Dwarf_Die swapped = ret[i];

		ret[i] = ret[search.count - 1 - i];
		ret[search.count - 1 - i] = swapped;
	}
	return search.count;
}

const char *debug_info_name(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));

	return name ? name : dwarf_diename(function);
}

/* ---- lines */

/* One row of a line table. */
struct row {
	uint64_t address;
	const char *file;
	int line;
	unsigned int discriminator;
	bool is_statement, ends_sequence;
};

static bool read_row(Dwarf_Lines *lines, size_t i, struct row *ret)
{
	Dwarf_Line *row = dwarf_onesrcline(lines, i);

	return row && dwarf_lineaddr(row, &ret->address) == 0 && dwarf_lineno(row, &ret->line) == 0 &&
	       dwarf_linediscriminator(row, &ret->discriminator) == 0 &&
	       dwarf_linebeginstatement(row, &ret->is_statement) == 0 &&
	       dwarf_lineendsequence(row, &ret->ends_sequence) == 0 &&
	       ((ret->file = dwarf_linesrc(row, NULL, NULL)) || ret->ends_sequence);
}

/* How many rows are at or before an address. libdw has sorted them. */
static size_t rows_until(Dwarf_Lines *lines, size_t count, uint64_t address)
{
	size_t low = 0;

	while (low < count) {
		size_t middle = low + (count - low) / 2;
		Dwarf_Addr start;

		if (dwarf_lineaddr(dwarf_onesrcline(lines, middle), &start) != 0 || start > address)
			count = middle;
		else
			low = middle + 1;
	}
	return low;
}

static bool ends_sequence(Dwarf_Lines *lines, size_t i)
{
	bool ends;

	return dwarf_lineendsequence(dwarf_onesrcline(lines, i), &ends) != 0 || ends;
}

static bool same_file(const char *a, const char *b)
{
	return a && b && (a == b || strcmp(a, b) == 0);
}

/*
 * There is often more than one row for an address. This chooses the same one as gdb: goes through the rows of a
 * sequence as dwarf2/read.c, lnp_state_machine::record_line() does; and of the rows that are kept, takes the one that
 * symtab.c, find_pc_sect_line() takes: at the last address, the last row that begins a statement.
 */
struct debug_info_line debug_info_line(Dwarf_Die *unit, uint64_t address)
{
	struct debug_info_line best = {0};
	bool best_is_statement = false, statement_here = false, any_discriminator = false;
	uint64_t best_address = 0, here = 0;
	const char *file = NULL; /* of the last row that was kept */
	int line = 0, line_before = 0;
	size_t count, first, end;
	Dwarf_Lines *lines;

	if (dwarf_getsrclines(unit, &lines, &count) != 0)
		return best;
	end = rows_until(lines, count, address);
	for (first = end; first > 0 && !ends_sequence(lines, first - 1);)
		first--;
	for (size_t i = first; i < end; i++) {
		bool other_file, kept;
		struct row row;

		if (!read_row(lines, i, &row))
			return (struct debug_info_line){0};
		other_file = !same_file(row.file, file);
		any_discriminator = row.discriminator != 0 || (any_discriminator && row.line == line_before);
		line_before = row.line;
		kept = row.line != 0 && !(other_file && row.address == here && !row.is_statement && statement_here) &&
		       (other_file || row.line != line || !any_discriminator);
		if (i == first || row.address != here)
			statement_here = false;
		here = row.address;
		statement_here |= row.is_statement;
		if (!kept)
			continue;
		/* If the next row at an address is of another file, it replaces the rows there. */
		if (best.number == 0 || row.address != best_address || other_file || row.is_statement ||
		    !best_is_statement) {
			best = (struct debug_info_line){row.file, row.line};
			best_address = row.address;
			best_is_statement = row.is_statement;
		}
		file = row.file;
		line = row.line;
	}
	return best;
}

struct debug_info_line debug_info_call(Dwarf_Die *unit, Dwarf_Die *inlined)
{
	struct debug_info_line call = {0};
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word number;
	size_t count;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &number) == 0 && number <= INT32_MAX)
		call.number = (int)number;
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &number) == 0 &&
	    dwarf_getsrcfiles(unit, &files, &count) == 0 && number < count)
		call.file = dwarf_filesrc(files, (size_t)number, NULL, NULL);
	return call;
}

const char *debug_info_folder(Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
}
