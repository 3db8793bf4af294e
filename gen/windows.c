#include "gen/windows.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "sentence.h"

#define MAX_DEPTH   256	 /* scopes and inlined calls within each other */
#define MAX_WINDOWS 4096 /* Ruby 3.1.2 has 59 */

struct search {
	struct layout *layout;
	const struct wanted_table *table;
	uint64_t bias;
	struct die_budget *budget;
	const char *function; /* outermost function around the place that is looked at */
};

/* A name as a word of a layout file: no spaces, not longer than such a line can hold. */
static char *as_word(const char *name)
{
	char *copy = sentence("%.200s", name);

	for (char *c = copy; *c; c++) {
		if (*c == ' ')
			*c = '?';
	}
	return copy;
}

static bool add_ranges(struct search *search, Dwarf_Die *die, int id)
{
	struct layout *layout = search->layout;
	Dwarf_Addr base, low, high;
	ptrdiff_t offset = 0;

	while (search->budget->steps && (offset = dwarf_ranges(die, offset, &base, &low, &high)) > 0) {
		search->budget->steps--;
		if (low >= high)
			continue;
		if (layout->nr_windows == MAX_WINDOWS)
			return false;
		struct layout_window *windows = reallocarray(layout->windows, layout->nr_windows + 1, sizeof(*windows));

		if (!windows)
			return false;
		layout->windows = windows;
		windows[layout->nr_windows++] = (struct layout_window){
		    .id = (enum layout_window_id)id,
		    .low = low + search->bias,
		    .high = high + search->bias,
		    .function = as_word(search->function),
		};
	}
	return true;
}

/* Looks at a function or a scope in it, and at all within. */
static bool look(struct search *search, Dwarf_Die *die, int depth)
{
	int tag = dwarf_tag(die);
	Dwarf_Die child;

	if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
		/* The name is that of the abstract instance: so a function's clones count, too. */
		const char *name = dwarf_diename(die);
		const struct wanted *wanted = name ? wanted_find(search->table, WANTED_WINDOW, name) : NULL;

		if (!search->function)
			search->function = name ? name : "?";
		if (wanted && !add_ranges(search, die, wanted->id))
			return false;
	}
	if (depth >= MAX_DEPTH || !die_first_child(die, search->budget, &child))
		return true;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_subprogram:
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
			if (!look(search, &child, depth + 1))
				return false;
			break;
		default:
			break;
		}
	} while (die_next_sibling(&child, search->budget));
	return true;
}

bool windows_add(struct layout *layout, Dwarf_Die *unit, const struct wanted_table *table, uint64_t bias,
		 struct die_budget *budget)
{
	struct search search = {.layout = layout, .table = table, .bias = bias, .budget = budget};
	Dwarf_Die child;

	if (!die_first_child(unit, budget, &child))
		return true;
	do {
		search.function = NULL;
		if (dwarf_tag(&child) == DW_TAG_subprogram && !look(&search, &child, 0))
			return false;
	} while (die_next_sibling(&child, budget));
	return true;
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
