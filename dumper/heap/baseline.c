#include "heap/baseline.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "heap/histogram_file.h"
#include "ruby/object_type.h"

static int by_name(const void *a, const void *b)
{
	return histogram_compare_names(a, b);
}

/* A row as it was before: its name and type belong to `object`. NULL if it is no row. */
static bool row_before(const json_t *object, struct heap_row *ret)
{
	const char *name = json_string_value(json_object_get(object, "class"));

	*ret = (struct heap_row){
	    .name = (char *)name,
	    .type = json_string_value(json_object_get(object, "type")),
	    .before = {.objects = histogram_file_count(object, "objects"),
		       .slot_bytes = histogram_file_count(object, "slot_bytes"),
		       .owned_bytes = histogram_file_count(object, "owned_bytes")},
	};
	return name && ret->type;
}

/* Adds a row that is not there any more. Returns false if there is not enough memory. */
static bool add_gone(struct histogram *histogram, const struct heap_row *row, const json_t *object)
{
	struct heap_row gone = *row;

	gone.name = strdup(row->name);
	gone.type = object_type_constant(row->type);
	return gone.name && histogram_add(histogram, &gone) &&
	       histogram_file_add_paths(object, true, &histogram->rows[histogram->nr_rows - 1]);
}

static struct error *compare(const char *file, const json_t *classes, struct histogram *histogram)
{
	const size_t nr_rows = histogram->nr_rows;
	const json_t *object;
	size_t i;

	if (nr_rows > 0)
		qsort(histogram->rows, nr_rows, sizeof(histogram->rows[0]), by_name);
	json_array_foreach(classes, i, object)
	{
		struct heap_row before, *now = NULL;

		if (!row_before(object, &before))
			return histogram_file_wrong(file, "an element of `classes` has no name or no type");
		if (nr_rows > 0)
			now = bsearch(&before, histogram->rows, nr_rows, sizeof(histogram->rows[0]), by_name);
		if (now)
			now->before = before.before;
		if (now ? !histogram_file_add_paths(object, true, now) : !add_gone(histogram, &before, object))
			return error_no_memory();
	}
	if (histogram->nr_rows > 0)
		qsort(histogram->rows, histogram->nr_rows, sizeof(histogram->rows[0]), histogram_compare_growth);
	histogram->has_before = true;
	return NULL;
}

struct error *baseline_compare(const char *file, struct histogram *histogram)
{
	json_t *root = NULL;
	struct error *error = histogram_file_read(file, &root);

	if (!error)
		error = compare(file, json_object_get(root, "classes"), histogram);
	if (!error) {
		histogram->has_paths_before = json_is_true(json_object_get(root, "has_paths"));
		histogram->pid_before = histogram_file_pid(root);
		histogram->doubts_before = histogram_file_doubts(root);
		histogram->incomplete_before = json_is_false(json_object_get(root, "complete"));
	}
	json_decref(root);
	return error;
}
