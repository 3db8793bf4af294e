#include "layout/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct layout *layout_create(void)
{
	return calloc(1, sizeof(struct layout));
}

void layout_destroy(struct layout *layout)
{
	if (!layout)
		return;
	free(layout->arch);
	free(layout->asked);
	free(layout->build_id);
	free(layout->configuration);
	free(layout->description);
	free(layout->digest);
	free(layout->levels);
	free(layout->origin);
	free(layout->producer);
	free(layout->source);
	free(layout->version);
	free(layout->versions);
	for (size_t i = 0; i < layout->nr_windows; i++)
		free(layout->windows[i].function);
	free(layout->windows);
	free(layout);
}

bool layout_range(const struct layout *layout, struct version_range *ret)
{
	struct version version;

	return layout->versions && version_parse_range(layout->versions, ret) &&
	       version_parse(layout->version, &version) && version_in_range(&version, ret);
}

bool layout_is_for(const struct layout *layout, const char *version)
{
	struct version_range range;
	struct version wanted;

	return strcmp(layout->version, version) == 0 ||
	       (layout_range(layout, &range) && version_parse(version, &wanted) && version_in_range(&wanted, &range));
}

bool layout_is_for_level(const struct layout *layout, const char *description)
{
	struct version_levels levels;
	unsigned int level;

	return !layout->levels || !version_parse_levels(layout->levels, &levels) || !description ||
	       !version_patch_level(description, &level) || (level >= levels.first && level <= levels.last);
}

void layout_releases(const struct layout *layout, char *ret, size_t size)
{
	struct version_levels levels;
	struct version_range range;

	if (layout->levels && version_parse_levels(layout->levels, &levels) && levels.first == levels.last)
		snprintf(ret, size, "%.31sp%u", layout->version, levels.first);
	else if (layout->levels && version_parse_levels(layout->levels, &levels))
		snprintf(ret, size, "%.31sp%u %.31sp%u", layout->version, levels.first, layout->version, levels.last);
	else
		snprintf(ret, size, "%.63s", layout_range(layout, &range) ? layout->versions : layout->version);
}

static int by_id_and_low(const void *a, const void *b)
{
	const struct layout_window *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->high < y->high ? -1 : x->high > y->high;
}

void layout_sort_windows(struct layout *layout)
{
	if (layout->nr_windows)
		qsort(layout->windows, layout->nr_windows, sizeof(*layout->windows), by_id_and_low);
}
