#include <jansson.h>

#include "heap/histogram.h"
#include "render/json_build.h"
#include "render/render.h"

static json_t *integer(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *path_objects(const struct histogram *histogram, const struct heap_row *row)
{
	json_t *array = json_array();

	for (size_t i = 0; i < row->nr_paths; i++) {
		const struct heap_path *path = &row->paths[i];
		json_t *object = json_pack("{s:s, s:o}", "path", path->text, "objects", integer(path->objects));

		if (object && histogram->has_paths_before)
			json_build_set(object, "before", path->before_not_known ? json_null() : integer(path->before));
		json_build_append(array, object);
	}
	return array;
}

/* The numbers of a class, or of a type. */
static json_t *row_numbers(const struct histogram *histogram, const struct heap_row *row)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "objects", integer(row->objects), "slot_bytes",
			 integer(row->slot_bytes), "owned_bytes", integer(row->owned_bytes), "owned_unknown",
			 integer(row->inexact), "old", histogram->no_ages ? json_null() : integer(row->old), "shady",
			 histogram->no_shady ? json_null() : integer(row->shady), "pinned", integer(row->pinned),
			 "dead", integer(row->dead));
}

static json_t *row_object(const struct histogram *histogram, const struct heap_row *row)
{
	json_t *object = row_numbers(histogram, row);

	if (object) {
		json_build_set(object, "class", json_string(row->name));
		json_build_set(object, "type", json_string(row->type));
	}
	if (object && histogram->has_before)
		json_build_set(object, "before",
			       json_pack("{s:o, s:o, s:o}", "objects", integer(row->before.objects), "slot_bytes",
					 integer(row->before.slot_bytes), "owned_bytes",
					 integer(row->before.owned_bytes)));
	if (object && histogram->has_paths)
		json_build_set(object, "paths", path_objects(histogram, row));
	if (object && histogram->mode == HEAP_UNPAUSED) {
		json_build_set(object, "low", integer(row->low));
		json_build_set(object, "high", integer(row->high));
	}
	return object;
}

static json_t *type_objects(const struct histogram *histogram)
{
	struct heap_row rows[HISTOGRAM_TYPES];
	const size_t count = histogram_types(histogram, rows);
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *object = row_numbers(histogram, &rows[i]);

		if (object)
			json_build_set(object, "type", json_string(rows[i].type));
		json_build_append(array, object);
	}
	return array;
}

static json_t *pool_objects(const struct heap_totals *totals)
{
	json_t *array = json_array();

	for (size_t i = 0; i < totals->nr_pools; i++)
		json_build_append(array,
				  json_pack("{s:o, s:o, s:o, s:o}", "slot_size", integer(totals->pools[i].slot_size),
					    "pages", integer(totals->pools[i].pages), "slots",
					    integer(totals->pools[i].slots), "free", integer(totals->pools[i].free)));
	return array;
}

static json_t *doubts(unsigned int bits)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < HEAP_DOUBTS; i++)
		if (bits >> i & 1)
			json_build_append(array, json_string(histogram_doubt_name((enum heap_doubt)i)));
	return array;
}

static json_t *path_doubts(const struct histogram *histogram)
{
	json_t *array = json_array();

	for (size_t i = 0; i < histogram->nr_path_doubts; i++)
		json_build_append(array, json_string(histogram->path_doubts[i]));
	return array;
}

/* What the earlier histogram was, if there is one. Fails only if there is not enough memory. */
static bool add_earlier(const struct histogram *histogram, json_t *root)
{
	return !histogram->has_before ||
	       (root && json_object_set_new(root, "before",
					    json_pack("{s:i, s:b, s:o}", "pid", (int)histogram->pid_before, "complete",
						      (int)!histogram->incomplete_before, "doubts",
						      doubts(histogram->doubts_before))) == 0);
}

static json_t *tenths(const struct heap_totals *totals)
{
	json_t *array = json_array();

	for (size_t i = 0; i < HEAP_TENTHS; i++)
		json_build_append(array, integer(totals->tenths[i]));
	return array;
}

bool histogram_json(const struct histogram *histogram, FILE *stream)
{
	static const char *const modes[] = {
	    [HEAP_UNPAUSED] = "unpaused",
	    [HEAP_STOPPED] = "stopped",
	    [HEAP_CORE] = "core",
	};
	const struct heap_totals *totals = &histogram->totals;
	json_t *classes = json_array(), *root;
	bool written;

	for (size_t i = 0; i < histogram->nr_rows; i++)
		json_build_append(classes, row_object(histogram, &histogram->rows[i]));
	root = json_pack(
	    "{s:i, s:i, s:s?, s:s?, s:s?, s:s?, s:s, s:f, s:o, s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
	    "s:o, s:o, s:o, s:b, s:o, s:o}",
	    "schema_version", 1, "pid", (int)histogram->pid, "core", histogram->core, "ruby_version",
	    histogram->version, "ruby_description", histogram->description, "layout_releases",
	    histogram->layout_releases, "mode", modes[histogram->mode], "seconds", histogram->seconds, "pause_ms",
	    histogram->mode == HEAP_STOPPED ? json_real(histogram->pause_ms) : json_null(), "looks",
	    (int)histogram->looks, "complete", !histogram->incomplete, "doubts", doubts(histogram->doubts), "pages",
	    integer(totals->pages), "pages_unread", integer(totals->unread), "pages_empty",
	    integer(totals->empty_pages), "pages_by_tenths_in_use", tenths(totals), "slots", integer(totals->slots),
	    "free", integer(totals->free), "objects", integer(totals->objects), "dead", integer(totals->dead), "pools",
	    pool_objects(totals), "types", type_objects(histogram), "has_paths", (int)histogram->has_paths,
	    "path_doubts", path_doubts(histogram), "classes", classes);
	written = add_earlier(histogram, root) && root && render_json_write(root, JSON_INDENT(1), stream) &&
		  fputc('\n', stream) != EOF;
	json_decref(root);
	return written;
}
