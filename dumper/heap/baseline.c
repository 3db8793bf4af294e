#include "heap/baseline.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "heap/sums.h"
#include "ruby/object_type.h"

/* The longest file that is read: some 500,000 classes. */
#define FILE_BYTES_MAX (128L << 20)

static struct error *not_such_a_file(const char *file, const char *why)
{
	return error_create(EXIT_FAILED, "%s was not written by `rbdump heap --json`: %s", file, why);
}

static struct error *read_file(const char *file, json_t **ret)
{
	struct stat status;
	json_error_t problem;
	struct error *error;
	FILE *stream = fopen(file, "re");

	if (!stream || fstat(fileno(stream), &status) != 0)
		error = error_create(EXIT_FAILED, "%s cannot be read: %s", file, strerror(errno));
	else if (!S_ISREG(status.st_mode) || status.st_size > FILE_BYTES_MAX)
		error = not_such_a_file(file, "it is no file, or too long");
	else
		error = NULL;
	if (!error) {
		*ret = json_loadf(stream, JSON_REJECT_DUPLICATES, &problem);
		if (!*ret)
			error = not_such_a_file(file, problem.text);
	}
	if (stream)
		fclose(stream);
	return error;
}

static uint64_t count_of(const json_t *object, const char *key)
{
	const json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static int by_name(const void *a, const void *b)
{
	return histogram_compare_names(a, b);
}

/* How many bytes a row has more than before; less than 0 if it has fewer. */
static int64_t growth(const struct heap_row *row)
{
	return (int64_t)sum(row->slot_bytes, row->owned_bytes) -
	       (int64_t)sum(row->before.slot_bytes, row->before.owned_bytes);
}

static int by_growth(const void *a, const void *b)
{
	const int64_t one = growth(a), other = growth(b);

	return one != other ? (one < other) - (one > other) : histogram_compare_names(a, b);
}

/* A row as it was before: its name and type belong to `object`. NULL if it is no row. */
static bool row_before(const json_t *object, struct heap_row *ret)
{
	const char *name = json_string_value(json_object_get(object, "class"));

	*ret = (struct heap_row){
	    .name = (char *)name,
	    .type = json_string_value(json_object_get(object, "type")),
	    .before = {.objects = count_of(object, "objects"),
		       .slot_bytes = count_of(object, "slot_bytes"),
		       .owned_bytes = count_of(object, "owned_bytes")},
	};
	return name && ret->type;
}

/* Adds the paths of the earlier histogram to a row. Returns false if there is not enough memory. */
static bool add_paths(const json_t *object, struct heap_row *row)
{
	const json_t *path;
	size_t i;

	json_array_foreach(json_object_get(object, "paths"), i, path)
	{
		const char *text = json_string_value(json_object_get(path, "path"));
		const struct heap_path before = {.text = text ? strdup(text) : NULL,
						 .before = count_of(path, "objects")};

		if (text && (!before.text || !histogram_add_path(row, &before)))
			return false;
	}
	return true;
}

/* Adds a row that is not there any more. Returns false if there is not enough memory. */
static bool add_gone(struct histogram *histogram, const struct heap_row *row, const json_t *object)
{
	struct heap_row gone = *row;

	gone.name = strdup(row->name);
	gone.type = object_type_constant(row->type);
	return gone.name && histogram_add(histogram, &gone) &&
	       add_paths(object, &histogram->rows[histogram->nr_rows - 1]);
}

static struct error *compare(const char *file, const json_t *classes, struct histogram *histogram)
{
	const size_t nr_rows = histogram->nr_rows;
	const json_t *object;
	size_t i;

	if (!json_is_array(classes))
		return not_such_a_file(file, "it has no classes");
	if (nr_rows > 0)
		qsort(histogram->rows, nr_rows, sizeof(histogram->rows[0]), by_name);
	json_array_foreach(classes, i, object)
	{
		struct heap_row before, *now = NULL;

		if (!row_before(object, &before))
			return not_such_a_file(file, "an element of its classes has no name");
		if (nr_rows > 0)
			now = bsearch(&before, histogram->rows, nr_rows, sizeof(histogram->rows[0]), by_name);
		if (now)
			now->before = before.before;
		if (now ? !add_paths(object, now) : !add_gone(histogram, &before, object))
			return error_no_memory();
	}
	if (histogram->nr_rows > 0)
		qsort(histogram->rows, histogram->nr_rows, sizeof(histogram->rows[0]), by_growth);
	histogram->has_before = true;
	return NULL;
}

struct error *baseline_compare(const char *file, struct histogram *histogram)
{
	json_t *root = NULL;
	struct error *error = read_file(file, &root);

	if (!error && json_integer_value(json_object_get(root, "schema_version")) != 1)
		error = not_such_a_file(file, "its schema_version is not 1");
	if (!error)
		error = compare(file, json_object_get(root, "classes"), histogram);
	histogram->has_paths_before = json_is_true(json_object_get(root, "has_paths"));
	json_decref(root);
	return error;
}
