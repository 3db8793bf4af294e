#include "heap/row_paths.h"

#include <stdlib.h>
#include <string.h>

#include "heap/class_paths.h"
#include "ruby/object_type.h"

/* The most paths of one class that are looked at: those with most objects. */
#define PATHS_MAX HISTOGRAM_PATHS_MAX

/* A path, to be sorted. */
struct ranked {
	uint32_t path;
	uint16_t group;
	uint64_t objects;
};

static int by_group(const void *a, const void *b)
{
	const struct ranked *one = a, *other = b;

	if (one->group != other->group)
		return one->group < other->group ? -1 : 1;
	if (one->objects != other->objects)
		return one->objects < other->objects ? 1 : -1;
	return (one->path > other->path) - (one->path < other->path);
}

/* A row, to be found by its name. */
struct named_row {
	struct heap_row *row;
};

static int by_row_name(const void *a, const void *b)
{
	return histogram_compare_names(((const struct named_row *)a)->row, ((const struct named_row *)b)->row);
}

/* The rows of a histogram by name, malloc'ed. */
static struct named_row *rows_by_name(const struct histogram *histogram)
{
	struct named_row *rows = calloc(histogram->nr_rows + 1, sizeof(rows[0]));

	for (size_t i = 0; rows && i < histogram->nr_rows; i++)
		rows[i].row = &histogram->rows[i];
	if (rows && histogram->nr_rows > 0)
		qsort(rows, histogram->nr_rows, sizeof(rows[0]), by_row_name);
	return rows;
}

/* The row of a group; NULL if there is none. Objects can be of a class that there was not yet when they were counted. */
static struct heap_row *row_of(const struct graph_look *look, uint16_t group, const struct named_row *rows,
			       size_t nr_rows)
{
	const struct ruby *ruby = &look->reading.walk.lasting;
	const struct census_kind *kind = &census_group(look->graph.census, group)->kind;
	const char *type = object_type_name(ruby->layout, kind->type);
	struct heap_row row = {.type = type ? type : "?"};
	const struct named_row wanted = {&row}, *found = NULL;
	struct text name = {0};

	kinds_add_name(ruby, kind, group, &name);
	row.name = name.data;
	if (name.data && nr_rows > 0)
		found = bsearch(&wanted, rows, nr_rows, sizeof(rows[0]), by_row_name);
	text_clear(&name);
	return found ? found->row : NULL;
}

/* Adds the paths of the groups. */
static bool add_ranked(const struct graph_look *look, const struct class_paths *paths, const struct ranked *ranked,
		       size_t count, const struct histogram *histogram)
{
	struct named_row *rows = rows_by_name(histogram);
	struct heap_row *row = NULL;
	bool enough = rows != NULL;

	for (size_t i = 0, of_group = 0; enough && i < count; i++, of_group++) {
		struct text text = {0};

		if (i == 0 || ranked[i].group != ranked[i - 1].group) {
			row = row_of(look, ranked[i].group, rows, histogram->nr_rows);
			of_group = 0;
		}
		if (!row || of_group >= PATHS_MAX)
			continue;
		class_paths_add_text(paths, look, ranked[i].path, &text);
		text_format(&text, "%s", text.length > 0 ? "" : "?");
		enough = text.data && !text.failed;
		if (enough)
			enough = histogram_add_path(row, text.data, ranked[i].objects, 0);
		else
			text_clear(&text);
	}
	free(rows);
	return enough;
}

static bool add_paths(const struct graph_look *look, const struct class_paths *paths, const struct histogram *histogram)
{
	const size_t count = paths->count - 1;
	struct ranked *ranked = calloc(count + 1, sizeof(ranked[0]));
	bool enough = ranked != NULL;

	for (size_t i = 0; enough && i < count; i++)
		ranked[i] = (struct ranked){(uint32_t)(i + 1), paths->of[i + 1].group, paths->of[i + 1].objects};
	if (enough && count > 0) {
		qsort(ranked, count, sizeof(ranked[0]), by_group);
		enough = add_ranked(look, paths, ranked, count, histogram);
	}
	free(ranked);
	return enough;
}

static void finish(const struct graph_look *look, struct histogram *histogram)
{
	histogram->has_paths = true;
	histogram->nr_path_doubts = graph_look_doubts(look, histogram->path_doubts);
	histogram->incomplete |= look->reading.walk.incomplete;
	histogram_sort_paths(histogram);
}

struct error *row_paths_add(const struct heap_options *options, struct session *session, struct histogram *histogram)
{
	struct class_paths paths = {0};
	struct graph_look look;
	struct error *error = graph_look_begin(options, session, &look);

	if (!error && !(class_paths_find(&look, &paths) && add_paths(&look, &paths, histogram)))
		error = error_no_memory();
	if (!error)
		finish(&look, histogram);
	class_paths_clear(&paths);
	graph_look_clear(&look);
	return error;
}
