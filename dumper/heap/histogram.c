#include "heap/histogram.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "heap/kinds.h"
#include "heap/sums.h"
#include "ruby/collections.h"
#include "ruby/object_type.h"

/* The most paths of one row, before they are sorted. A hostile target can have many classes of one name. */
#define ROW_PATHS_MAX 1000

const char *histogram_doubt_name(enum heap_doubt doubt)
{
	static const char *const names[HEAP_DOUBTS] = {
	    [HEAP_COLLECTED] = "collected",
	    [HEAP_UNTOLD] = "collections-not-known",
	    [HEAP_BLIND] = "dead-not-known",
	    [HEAP_MARKING] = "marking",
	    [HEAP_TOO_MANY] = "too-many-classes",
	    [HEAP_PARTIAL] = "too-large",
	    [HEAP_THREADS_RUNNING] = "threads-running",
	    [HEAP_INTERRUPTED] = "interrupted",
	};

	return names[doubt];
}

const char *histogram_doubt_text(enum heap_doubt doubt)
{
	static const char *const texts[HEAP_DOUBTS] = {
	    [HEAP_COLLECTED] =
		"A garbage collection began or was running during each look, so the ranges are not certain.",
	    [HEAP_UNTOLD] = "It is not known when a garbage collection begins, so the ranges are not certain.",
	    [HEAP_BLIND] = ("Some of the objects may be dead, and some of the objects that count as dead may be alive: "
			    "the garbage collector was running, or this Ruby does not show which objects are dead."),
	    [HEAP_MARKING] = "Some of the objects may be dead: a garbage collection is still marking.",
	    [HEAP_TOO_MANY] = "There are too many kinds of objects: the classes of some objects are not shown.",
	    [HEAP_PARTIAL] = "The heap is too large to compare all of it, so the ranges are not certain.",
	    [HEAP_INTERRUPTED] = "^C ended the reading, so only part of the heap was read.",
	    [HEAP_THREADS_RUNNING] = "A thread could not be stopped, so the numbers can contradict each other.",
	};

	return texts[doubt];
}

const char *histogram_mode_text(enum heap_mode mode)
{
	static const char *const texts[] = {
	    [HEAP_UNPAUSED] = "read while it ran",
	    [HEAP_STOPPED] = "stopped",
	    [HEAP_CORE] = "core",
	};

	return texts[mode];
}

static const char *type_name(const struct ruby *ruby, const struct census_group *group)
{
	const char *name = object_type_name(ruby->layout, group->kind.type);

	return name ? name : "?";
}

/* The name of a group's row, malloc'ed; NULL if there is not enough memory. */
static char *name_of(const struct ruby *ruby, const struct census_group *group, uint16_t number)
{
	struct text text = {0};

	kinds_add_name(ruby, &group->kind, number, &text);
	if (!text.failed)
		return text.data;
	text_clear(&text);
	return NULL;
}

int histogram_compare_names(const struct heap_row *a, const struct heap_row *b)
{
	const int order = strcmp(a->name, b->name);

	return order != 0 ? order : strcmp(a->type, b->type);
}

static int by_name(const void *a, const void *b)
{
	return histogram_compare_names(a, b);
}

static int by_bytes(const void *a, const void *b)
{
	const struct heap_row *one = a, *other = b;
	const uint64_t bytes = sum(one->slot_bytes, one->owned_bytes),
		       more = sum(other->slot_bytes, other->owned_bytes);

	return bytes != more ? (bytes < more) - (bytes > more) : by_name(a, b);
}

void histogram_merge(struct heap_row *into, const struct heap_row *row)
{
	sum_add(&into->objects, row->objects);
	sum_add(&into->low, row->low);
	sum_add(&into->high, row->high);
	sum_add(&into->slot_bytes, row->slot_bytes);
	sum_add(&into->owned_bytes, row->owned_bytes);
	sum_add(&into->inexact, row->inexact);
	sum_add(&into->old, row->old);
	sum_add(&into->shady, row->shady);
	sum_add(&into->pinned, row->pinned);
	sum_add(&into->dead, row->dead);
	sum_add(&into->before.objects, row->before.objects);
	sum_add(&into->before.slot_bytes, row->before.slot_bytes);
	sum_add(&into->before.owned_bytes, row->before.owned_bytes);
}

static struct heap_row row_of(const struct ruby *ruby, const struct heap_count *count, uint16_t number, bool collected,
			      bool old_stay)
{
	const struct census_group *group = census_group(count->census, number);
	struct heap_row row = {.name = name_of(ruby, group, number), .type = type_name(ruby, group)};

	row.slot_bytes = group->slot_bytes;
	row.owned_bytes = group->owned_bytes;
	row.inexact = group->inexact;
	if (group->kind.dead) {
		row.dead = group->objects;
		/* They may be alive: the range of the class has them as possible ones. */
		if (count->blind)
			heap_count_range(count, group, collected, old_stay, &row.low, &row.high);
		row.low = 0;
		return row;
	}
	row.objects = group->objects;
	heap_count_range(count, group, collected, old_stay, &row.low, &row.high);
	row.old = group->kind.old ? group->objects : 0;
	row.shady = group->shady;
	row.pinned = group->pinned;
	return row;
}

static int by_slot_size(const void *a, const void *b)
{
	const struct heap_pool *one = a, *other = b;

	return (one->slot_size > other->slot_size) - (one->slot_size < other->slot_size);
}

bool histogram_make(const struct ruby *ruby, const struct heap_count *count, bool old_stay, struct histogram *ret)
{
	const bool collected = ret->doubts != 0;
	size_t kept = 0;

	ret->totals = count->totals;
	ret->incomplete = count->incomplete;
	ret->no_ages = !collections_have_ages(ruby->layout);
	ret->no_shady = !layout_has(ruby->layout, F_heap_page_shady_bits);
	qsort(ret->totals.pools, ret->totals.nr_pools, sizeof(ret->totals.pools[0]), by_slot_size);
	for (size_t i = CENSUS_OTHERS; i < census_end(count->census); i++) {
		const struct census_group *group = census_group(count->census, (uint16_t)i);
		struct heap_row row;

		if (group->objects == 0 && (!count->has_ranges || group->before == 0 || group->kind.dead))
			continue;
		row = row_of(ruby, count, (uint16_t)i, collected, old_stay);
		if (!row.name || !histogram_add(ret, &row))
			return false;
	}
	if (ret->nr_rows == 0)
		return true;
	qsort(ret->rows, ret->nr_rows, sizeof(ret->rows[0]), by_name);
	for (size_t i = 1; i < ret->nr_rows; i++) {
		if (by_name(&ret->rows[kept], &ret->rows[i]) == 0) {
			histogram_merge(&ret->rows[kept], &ret->rows[i]);
			free(ret->rows[i].name);
		} else {
			ret->rows[++kept] = ret->rows[i];
		}
	}
	ret->nr_rows = kept + 1;
	qsort(ret->rows, ret->nr_rows, sizeof(ret->rows[0]), by_bytes);
	return true;
}

bool histogram_add(struct histogram *histogram, const struct heap_row *row)
{
	if (!array_make_room(histogram->rows, histogram->rows_capacity, histogram->nr_rows + 1)) {
		free(row->name);
		return false;
	}
	histogram->rows[histogram->nr_rows++] = *row;
	return true;
}

/* Counts of a file can be of any size. */
static void add_limited(uint64_t *count, uint64_t more)
{
	const uint64_t most = INT64_MAX / 4;

	*count = *count > most || more > most - *count ? most : *count + more;
}

bool histogram_add_path(struct heap_row *row, char *text, uint64_t objects, uint64_t before)
{
	size_t i = 0;

	while (i < row->nr_paths && strcmp(row->paths[i].text, text) != 0)
		i++;
	if (i < row->nr_paths || row->nr_paths >= ROW_PATHS_MAX) {
		free(text);
	} else if (array_make_room(row->paths, row->paths_capacity, row->nr_paths + 1)) {
		row->paths[row->nr_paths++] = (struct heap_path){.text = text};
	} else {
		free(text);
		return false;
	}
	if (i < row->nr_paths) {
		add_limited(&row->paths[i].objects, objects);
		add_limited(&row->paths[i].before, before);
	}
	return true;
}

/* How many objects a path has more than before; less than 0 if it has fewer. */
static int64_t path_growth(const struct heap_path *path)
{
	return (int64_t)path->objects - (int64_t)path->before;
}

static int by_path_growth(const void *a, const void *b)
{
	const int64_t one = path_growth(a), other = path_growth(b);

	return one != other ? (one < other) - (one > other)
			    : strcmp(((const struct heap_path *)a)->text, ((const struct heap_path *)b)->text);
}

static int by_path_objects(const void *a, const void *b)
{
	const struct heap_path *one = a, *other = b;

	return one->objects != other->objects ? (one->objects < other->objects) - (one->objects > other->objects)
					      : strcmp(one->text, other->text);
}

/* What is known of paths that only one of both histograms has, if the other one has only those with most objects. */
static void complete_paths(struct heap_row *row)
{
	size_t now = 0, kept = 0;

	for (size_t i = 0; i < row->nr_paths; i++)
		now += row->paths[i].objects > 0;
	for (size_t i = 0; i < row->nr_paths; i++) {
		struct heap_path *path = &row->paths[i];

		if (path->objects == 0 && now >= HISTOGRAM_PATHS_MAX) {
			free(path->text);
			continue;
		}
		path->before_not_known = path->before == 0 && row->least_before > 0;
		if (path->before_not_known)
			path->before = row->least_before < path->objects ? row->least_before : path->objects;
		row->paths[kept++] = *path;
	}
	row->nr_paths = kept;
}

uint64_t histogram_kept_growth(const struct heap_row *row)
{
	uint64_t grown = 0;

	for (size_t i = 0; i < row->nr_paths; i++)
		if (path_growth(&row->paths[i]) > 0)
			add_limited(&grown, (uint64_t)path_growth(&row->paths[i]));
	return grown;
}

/* By how many bytes a row has grown; less than 0 if it has become smaller. */
static int64_t row_growth(const struct heap_row *row)
{
	return (int64_t)sum(row->slot_bytes, row->owned_bytes) -
	       (int64_t)sum(row->before.slot_bytes, row->before.owned_bytes);
}

int histogram_compare_growth(const void *a, const void *b)
{
	const int64_t one = row_growth(a), other = row_growth(b);

	return one != other ? (one < other) - (one > other) : histogram_compare_names(a, b);
}

/* About how many bytes more than before the paths of a row keep. */
static double kept_bytes(const struct heap_row *row)
{
	return row->objects == 0 ? 0
				 : (double)histogram_kept_growth(row) * (double)sum(row->slot_bytes, row->owned_bytes) /
				       (double)row->objects;
}

static int by_kept_growth(const void *a, const void *b)
{
	const double one = kept_bytes(a), other = kept_bytes(b);

	return one != other ? (one < other) - (one > other) : histogram_compare_growth(a, b);
}

void histogram_sort_paths(struct histogram *histogram)
{
	const bool compared = histogram->has_before && histogram->has_paths_before;
	const size_t most = (compared ? 2 : 1) * (size_t)HISTOGRAM_PATHS_MAX;

	for (size_t i = 0; i < histogram->nr_rows; i++) {
		struct heap_row *row = &histogram->rows[i];

		if (compared)
			complete_paths(row);
		if (row->nr_paths > 1)
			qsort(row->paths, row->nr_paths, sizeof(row->paths[0]),
			      compared ? by_path_growth : by_path_objects);
		while (row->nr_paths > most)
			free(row->paths[--row->nr_paths].text);
	}
	if (compared && histogram->nr_rows > 0)
		qsort(histogram->rows, histogram->nr_rows, sizeof(histogram->rows[0]), by_kept_growth);
}

void histogram_clear(struct histogram *histogram)
{
	for (size_t i = 0; i < histogram->nr_rows; i++) {
		for (size_t j = 0; j < histogram->rows[i].nr_paths; j++)
			free(histogram->rows[i].paths[j].text);
		free(histogram->rows[i].paths);
		free(histogram->rows[i].name);
	}
	free(histogram->rows);
	histogram->rows = NULL;
	histogram->nr_rows = 0;
}

size_t histogram_types(const struct histogram *histogram, struct heap_row ret[HISTOGRAM_TYPES])
{
	static char no_name[] = "";
	size_t count = 0;

	for (size_t i = 0; i < histogram->nr_rows; i++) {
		const struct heap_row *row = &histogram->rows[i];
		const size_t at = array_first(ret, count, one, strcmp(one->type, row->type) >= 0);

		if (at == count || strcmp(ret[at].type, row->type) != 0) {
			if (count == HISTOGRAM_TYPES)
				continue;
			memmove(&ret[at + 1], &ret[at], (count - at) * sizeof(ret[0]));
			ret[at] = (struct heap_row){.name = no_name, .type = row->type};
			count++;
		}
		histogram_merge(&ret[at], row);
	}
	qsort(ret, count, sizeof(ret[0]), by_bytes);
	return count;
}
