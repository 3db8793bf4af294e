#include "store/nearest.h"

#include <limits.h>
#include <stdlib.h>

/* The place of a layout in the order. The members decide one after the other, and the lower value comes first. */
struct place {
	int series;   /* its series compared to that of the release: below 0 if it is older */
	long patches; /* how far its releases are from the wished one, in the last number of the version */
	long levels;  /* the same in the patch level */
	int side;     /* 0 if its releases are older, 1 if they are newer */
	struct version_range range;
	bool configured;
	size_t index;
};

static bool range_of(const struct layout *layout, struct version_range *ret)
{
	if (layout_range(layout, ret))
		return true;
	if (!version_parse(layout->version, &ret->first))
		return false;
	ret->last = ret->first;
	return true;
}

static int compare_series(const struct version *a, const struct version *b)
{
	if (a->major != b->major)
		return a->major < b->major ? -1 : 1;
	return a->minor < b->minor ? -1 : a->minor > b->minor;
}

/* How far a number is outside of a range; below 0 if the range ends before it. */
static long distance(unsigned int number, unsigned int first, unsigned int last)
{
	if (number > last)
		return (long)last - (long)number;
	return number < first ? (long)first - (long)number : 0;
}

static struct place place_of(const struct layout *layout, size_t index, const struct version *version,
			     const char *description)
{
	struct place place = {.configured = layout->configuration, .index = index};
	struct version_levels levels;
	unsigned int level;
	long patches, apart = 0;

	range_of(layout, &place.range);
	place.series = compare_series(&place.range.last, version);
	/* Of an older series, the newest layout is the nearest; of a newer series, the oldest one. */
	patches = place.series < 0   ? (long)place.range.last.patch - INT_MAX
		  : place.series > 0 ? (long)place.range.first.patch
				     : distance(version->patch, place.range.first.patch, place.range.last.patch);
	if (layout->levels && version_parse_levels(layout->levels, &levels) && description &&
	    version_patch_level(description, &level))
		apart = distance(level, levels.first, levels.last);
	place.patches = labs(patches);
	place.levels = labs(apart);
	place.side = patches != 0 ? patches > 0 : apart > 0;
	return place;
}

static int by_index(const struct place *x, const struct place *y)
{
	return x->index < y->index ? -1 : x->index > y->index;
}

static int nearest_first(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	if (x->patches != y->patches)
		return x->patches < y->patches ? -1 : 1;
	if (x->levels != y->levels)
		return x->levels < y->levels ? -1 : 1;
	if (x->side != y->side)
		return x->side < y->side ? -1 : 1;
	if (x->configured != y->configured)
		return x->configured ? 1 : -1;
	return by_index(x, y);
}

static int newest_first(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int newer = version_compare(&y->range.last, &x->range.last);

	if (newer != 0)
		return newer;
	if (x->configured != y->configured)
		return x->configured ? 1 : -1;
	return by_index(x, y);
}

/* Whether a layout is of the series of the release; or, if there is none, of the next older or next newer series. */
static bool is_near(const struct layout *const *layouts, size_t count, const struct place *place,
		    const struct version *version)
{
	struct version_range other;

	for (size_t i = 0; i < count; i++) {
		int series, apart;

		if (!range_of(layouts[i], &other))
			continue;
		series = compare_series(&other.last, version);
		apart = compare_series(&other.last, &place->range.last);
		if (place->series != 0 && (series == 0 || (series == place->series && apart == -series)))
			return false;
	}
	return true;
}

size_t nearest_choose(const char *version, const char *description, const struct layout *const *layouts, size_t count,
		      size_t *order)
{
	struct place *places = calloc(count + 1, sizeof(*places));
	struct version_range range;
	struct version to;
	size_t near = 0;

	if (!places || !version_parse(version, &to)) {
		free(places);
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		if (!range_of(layouts[i], &range))
			continue;
		places[near] = place_of(layouts[i], i, &to, description);
		near += is_near(layouts, count, &places[near], &to);
	}
	qsort(places, near, sizeof(*places), nearest_first);
	for (size_t i = 0; i < near; i++)
		order[i] = places[i].index;
	free(places);
	return near;
}

size_t nearest_newest_first(const struct layout *const *layouts, size_t count, size_t *order)
{
	struct place *places = calloc(count + 1, sizeof(*places));
	size_t releases = 0;

	for (size_t i = 0; places && i < count; i++) {
		places[releases] = (struct place){.configured = layouts[i]->configuration, .index = i};
		releases += range_of(layouts[i], &places[releases].range);
	}
	if (releases > 0)
		qsort(places, releases, sizeof(*places), newest_first);
	for (size_t i = 0; i < releases; i++)
		order[i] = places[i].index;
	free(places);
	return releases;
}
