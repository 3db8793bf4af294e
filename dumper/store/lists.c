#include "store/lists.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "layout/read.h"
#include "layout/version.h"
#include "store/folders.h"
#include "store/nearest.h"

struct listing {
	layout_lister *list;
	void *context;
};

static bool list_visit(void *context, const struct place *place)
{
	const struct listing *listing = context;
	struct layout *header = NULL;
	FILE *file = folders_stream(place);
	struct error *wrong;

	if (file) {
		wrong = layout_read_header(file, &header);
		fclose(file);
	} else {
		wrong =
		    error_create(EXIT_FAILED, "cannot be read: %s", place->why ? place->why->message : strerror(errno));
	}
	listing->list(listing->context, place->path, header, wrong);
	layout_destroy(header);
	error_destroy(wrong);
	return false;
}

void layout_lists_show(layout_lister *list, void *context)
{
	struct listing listing = {list, context};

	folders_visit(NULL, list_visit, &listing);
}

void layout_list_clear(struct layout_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		layout_found_clear(&list->of[i]);
	free(list->of);
	*list = (struct layout_list){0};
}

struct reading {
	const char *arch;
	struct layout_list list;
};

/* Whether the list has one with the same version and facts. */
static bool has_same(const struct layout_list *list, const struct layout *layout)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct layout *other = list->of[i].layout;

		if (layout->digest && other->digest && strcmp(layout->digest, other->digest) == 0 &&
		    strcmp(layout->version, other->version) == 0)
			return true;
	}
	return false;
}

static bool read_visit(void *context, const struct place *place)
{
	struct reading *reading = context;
	struct layout_found found = {.source = LAYOUT_BY_VERSION};
	FILE *file = folders_stream(place);

	if (!file)
		return false;
	error_destroy(layout_read(file, &found.layout));
	fclose(file);
	if (!found.layout || found.layout->build_id || strcmp(found.layout->arch, reading->arch) != 0 ||
	    has_same(&reading->list, found.layout)) {
		layout_found_clear(&found);
		return false;
	}
	found.file = strdup(place->path);
	if (found.file && array_make_room_for_one(reading->list.of, reading->list.count))
		reading->list.of[reading->list.count++] = found;
	else
		layout_found_clear(&found);
	return false;
}

/*
 * Reads the layouts for releases, in the order of nearest.h.
 *   to  reads only the layouts that are nearest to this wish; NULL: reads all
 */
static void read_ordered(const char *arch, const struct layout_wish *to, struct layout_list *ret)
{
	struct reading reading = {.arch = arch};
	const struct layout **layouts;
	size_t *order, count = 0;

	folders_visit(NULL, read_visit, &reading);
	layouts = calloc(reading.list.count + 1, sizeof(struct layout *));
	order = calloc(reading.list.count + 1, sizeof(*order));
	*ret = (struct layout_list){.of = calloc(reading.list.count + 1, sizeof(*ret->of))};
	for (size_t i = 0; layouts && i < reading.list.count; i++)
		layouts[i] = reading.list.of[i].layout;
	if (layouts && order && ret->of)
		count = to ? nearest_choose(to->version, to->description, layouts, reading.list.count, order)
			   : nearest_newest_first(layouts, reading.list.count, order);
	for (size_t i = 0; i < count; i++) {
		struct layout_found *from = &reading.list.of[order[i]];

		ret->of[ret->count++] = *from;
		*from = (struct layout_found){0};
	}
	free(layouts);
	free(order);
	layout_list_clear(&reading.list);
}

void layout_lists_releases(const char *arch, struct layout_list *ret)
{
	read_ordered(arch, NULL, ret);
}

void layout_lists_nearest(const struct layout_wish *wish, struct layout_list *ret)
{
	read_ordered(wish->arch, wish, ret);
	for (size_t i = 0; i < ret->count; i++)
		ret->of[i].source = LAYOUT_NEAREST;
}

/* The layout of the newest release of a series, so far. */
struct newest {
	const struct layout_wish *wish;
	struct version series, last;
	bool found;
};

static void newest_visit(void *context, const char *path, const struct layout *header, const struct error *wrong)
{
	struct newest *newest = context;
	struct version_range range;

	(void)path;
	if (wrong || !header || header->build_id || strcmp(header->arch, newest->wish->arch) != 0)
		return;
	if (!header->versions || !version_parse_range(header->versions, &range)) {
		if (!version_parse(header->version, &range.last))
			return;
	}
	if (!version_same_series(&range.last, &newest->series) ||
	    (newest->found && version_compare(&range.last, &newest->last) <= 0))
		return;
	newest->found = true;
	newest->last = range.last;
}

bool layout_lists_newest(const struct layout_wish *wish, char *version, size_t size)
{
	struct newest newest = {.wish = wish};

	if (!wish->version || !version_parse(wish->version, &newest.series))
		return false;
	layout_lists_show(newest_visit, &newest);
	snprintf(version, size, "%u.%u.%u", newest.last.major, newest.last.minor, newest.last.patch);
	return newest.found;
}
