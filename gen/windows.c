#include "gen/windows.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "layout/words.h"

#define MAX_DEPTH   256	 /* nested scopes and inlined calls */
#define MAX_WINDOWS 4096 /* Ruby 3.1.2 has 59 */

struct search {
	struct layout *layout;
	const struct wanted_table *table;
	uint64_t bias;
	struct die_budget *budget;
	const char *function; /* the outermost function around the current entry */
};

/*
 * A name as a word of a layout file: without spaces, and short enough for a line; malloc'ed. NULL if there is not
 * enough memory.
 */
static char *as_word(const char *name)
{
	char *copy = layout_text(name, 200);

	for (char *c = copy; c && *c; c++) {
		if (*c == ' ')
			*c = '?';
	}
	return copy;
}

static struct error *add_ranges(struct search *search, Dwarf_Die *die, int id)
{
	struct layout *layout = search->layout;
	Dwarf_Addr base, low, high;
	ptrdiff_t offset = 0;
	char *function;

	while (search->budget->steps && (offset = dwarf_ranges(die, offset, &base, &low, &high)) > 0) {
		search->budget->steps--;
		if (low >= high)
			continue;
		if (layout->nr_windows == MAX_WINDOWS)
			return error_create(EXIT_FAILED, "its debug info has too many inlined functions");
		function =
		    array_make_room_for_one(layout->windows, layout->nr_windows) ? as_word(search->function) : NULL;
		if (!function)
			return error_no_memory();
		layout->windows[layout->nr_windows++] = (struct layout_window){
		    .id = (enum layout_window_id)id,
		    .low = low + search->bias,
		    .high = high + search->bias,
		    .function = function,
		};
	}
	return NULL;
}

/* Looks at a function, or a scope in it, and at everything inside. */
static struct error *look(struct search *search, Dwarf_Die *die, int depth)
{
	int tag = dwarf_tag(die);
	struct error *error = NULL;
	Dwarf_Die child;

	if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
		/* The name is that of the abstract instance, so clones of a function count, too. */
		const char *name = dwarf_diename(die);
		const struct wanted *wanted = name ? wanted_find(search->table, WANTED_WINDOW, name) : NULL;

		if (!search->function)
			search->function = name ? name : "?";
		if (wanted)
			error = add_ranges(search, die, wanted->id);
	}
	if (error || depth >= MAX_DEPTH || !die_first_child(die, search->budget, &child))
		return error;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_subprogram:
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
			error = look(search, &child, depth + 1);
			break;
		default:
			break;
		}
	} while (!error && die_next_sibling(&child, search->budget));
	return error;
}

struct error *windows_add(struct layout *layout, Dwarf_Die *unit, const struct wanted_table *table, uint64_t bias,
			  struct die_budget *budget)
{
	struct search search = {.layout = layout, .table = table, .bias = bias, .budget = budget};
	struct error *error = NULL;
	Dwarf_Die child;

	if (!die_first_child(unit, budget, &child))
		return NULL;
	do {
		search.function = NULL;
		if (dwarf_tag(&child) == DW_TAG_subprogram)
			error = look(&search, &child, 0);
	} while (!error && die_next_sibling(&child, budget));
	return error;
}

void windows_finish(struct layout *layout)
{
	size_t kept = 0;

	layout_sort_windows(layout);
	for (size_t i = 0; i < layout->nr_windows; i++) {
		struct layout_window *window = &layout->windows[i];
		const struct layout_window *last = kept ? &layout->windows[kept - 1] : NULL;

		if (last && last->id == window->id && last->low == window->low && last->high == window->high)
			free(window->function);
		else
			layout->windows[kept++] = *window;
	}
	layout->nr_windows = kept;
}
