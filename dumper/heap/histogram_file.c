#include "heap/histogram_file.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "heap/sums.h"
#include "ruby/object_type.h"

/* The longest file that is read: some 500,000 classes without paths. */
#define FILE_BYTES_MAX (128L << 20)

/* More than any heap has. Sums and differences of such numbers fit into 64 bits. */
#define COUNT_MAX (INT64_MAX / 4)

struct error *histogram_file_wrong(const char *file, const char *why)
{
	return error_create(EXIT_FAILED, "%s was not written by `rbdump heap --json`: %s", file, why);
}

static struct error *load(const char *file, json_t **ret)
{
	struct stat status;
	json_error_t problem;
	struct error *error;
	FILE *stream = fopen(file, "re");

	if (!stream || fstat(fileno(stream), &status) != 0)
		error = error_create(EXIT_FAILED, "%s cannot be read: %s", file, strerror(errno));
	else if (!S_ISREG(status.st_mode) || status.st_size > FILE_BYTES_MAX)
		error = histogram_file_wrong(file, "it is not a regular file, or it is too long");
	else
		error = NULL;
	if (!error) {
		*ret = json_loadf(stream, JSON_REJECT_DUPLICATES, &problem);
		if (!*ret)
			error = histogram_file_wrong(file, problem.text);
	}
	if (stream)
		fclose(stream);
	return error;
}

struct error *histogram_file_read(const char *file, json_t **ret)
{
	struct error *error = load(file, ret);

	if (!error && json_integer_value(json_object_get(*ret, "schema_version")) != 1)
		error = histogram_file_wrong(file, "its schema_version is not 1");
	if (!error && !json_is_array(json_object_get(*ret, "classes")))
		error = histogram_file_wrong(file, "it has no classes");
	return error;
}

uint64_t histogram_file_count(const json_t *object, const char *key)
{
	const json_int_t value = json_integer_value(json_object_get(object, key));

	return value <= 0 ? 0 : value > COUNT_MAX ? COUNT_MAX : (uint64_t)value;
}

bool histogram_file_add_paths(const json_t *object, bool before, struct heap_row *row)
{
	const json_t *paths = json_object_get(object, "paths"), *path;
	const bool cut = before && json_array_size(paths) >= HISTOGRAM_PATHS_MAX;
	size_t i;

	json_array_foreach(paths, i, path)
	{
		const char *text = json_string_value(json_object_get(path, "path"));
		const uint64_t objects = histogram_file_count(path, "objects");
		char *copy = text ? strdup(text) : NULL;

		if (cut && (i == 0 || objects < row->least_before))
			row->least_before = objects;
		if (text && (!copy || !histogram_add_path(row, copy, before ? 0 : objects, before ? objects : 0)))
			return false;
	}
	return true;
}

static enum heap_mode mode_of(const char *name)
{
	if (name && strcmp(name, "core") == 0)
		return HEAP_CORE;
	return name && strcmp(name, "stopped") == 0 ? HEAP_STOPPED : HEAP_UNPAUSED;
}

pid_t histogram_file_pid(const json_t *root)
{
	return (pid_t)(histogram_file_count(root, "pid") % INT_MAX);
}

unsigned int histogram_file_doubts(const json_t *root)
{
	const json_t *name;
	unsigned int ret = 0;
	size_t i;

	json_array_foreach(json_object_get(root, "doubts"), i, name)
	{
		const char *text = json_string_value(name);

		for (unsigned int doubt = 0; text && doubt < HEAP_DOUBTS; doubt++)
			if (strcmp(text, histogram_doubt_name((enum heap_doubt)doubt)) == 0)
				ret |= 1U << doubt;
	}
	return ret;
}

static struct heap_totals totals_of(const json_t *root)
{
	struct heap_totals totals = {
	    .pages = histogram_file_count(root, "pages"),
	    .slots = histogram_file_count(root, "slots"),
	    .free = histogram_file_count(root, "free"),
	    .objects = histogram_file_count(root, "objects"),
	    .dead = histogram_file_count(root, "dead"),
	    .unread = histogram_file_count(root, "pages_unread"),
	    .empty_pages = histogram_file_count(root, "pages_empty"),
	};
	const json_t *pool;
	size_t i;

	json_array_foreach(json_object_get(root, "pools"), i, pool)
	{
		const struct heap_pool of = {
		    .slot_size = histogram_file_count(pool, "slot_size"),
		    .pages = histogram_file_count(pool, "pages"),
		    .slots = histogram_file_count(pool, "slots"),
		    .free = histogram_file_count(pool, "free"),
		};

		if (totals.nr_pools == HEAP_POOLS)
			break;
		sum_add(&totals.page_bytes,
			of.slots > 0 && of.slot_size > SUM_MAX / of.slots ? SUM_MAX : of.slot_size * of.slots);
		totals.pools[totals.nr_pools++] = of;
	}
	return totals;
}

/* Adds one class. Returns false if there is not enough memory. */
static bool add_row(const json_t *object, const char *name, const char *type, struct histogram *ret)
{
	struct heap_row row = {
	    .name = strdup(name),
	    .type = object_type_constant(type),
	    .objects = histogram_file_count(object, "objects"),
	    .slot_bytes = histogram_file_count(object, "slot_bytes"),
	    .owned_bytes = histogram_file_count(object, "owned_bytes"),
	    .inexact = histogram_file_count(object, "owned_unknown"),
	    .old = histogram_file_count(object, "old"),
	    .shady = histogram_file_count(object, "shady"),
	    .pinned = histogram_file_count(object, "pinned"),
	    .dead = histogram_file_count(object, "dead"),
	    .low = histogram_file_count(object, "low"),
	    .high = histogram_file_count(object, "high"),
	};

	ret->no_ages |= json_is_null(json_object_get(object, "old"));
	ret->no_shady |= json_is_null(json_object_get(object, "shady"));
	return row.name && histogram_add(ret, &row) &&
	       histogram_file_add_paths(object, false, &ret->rows[ret->nr_rows - 1]);
}

struct error *histogram_file_make(const char *file, const json_t *root, struct histogram *ret)
{
	const json_t *object;
	size_t i;

	*ret = (struct histogram){
	    .pid = histogram_file_pid(root),
	    .core = json_string_value(json_object_get(root, "core")),
	    .version = json_string_value(json_object_get(root, "ruby_version")),
	    .description = json_string_value(json_object_get(root, "ruby_description")),
	    .layout_releases = json_string_value(json_object_get(root, "layout_releases")),
	    .mode = mode_of(json_string_value(json_object_get(root, "mode"))),
	    .seconds = json_number_value(json_object_get(root, "seconds")),
	    .pause_ms = json_number_value(json_object_get(root, "pause_ms")),
	    .looks = (unsigned int)(histogram_file_count(root, "looks") % INT_MAX),
	    .doubts = histogram_file_doubts(root),
	    .incomplete = json_is_false(json_object_get(root, "complete")),
	    .totals = totals_of(root),
	    .has_paths = json_is_true(json_object_get(root, "has_paths")),
	};
	if (!ret->version)
		ret->version = "";
	json_array_foreach(json_object_get(root, "classes"), i, object)
	{
		const char *name = json_string_value(json_object_get(object, "class"));
		const char *type = json_string_value(json_object_get(object, "type"));

		if (!name || !type)
			return histogram_file_wrong(file, "an element of `classes` has no name or no type");
		if (!add_row(object, name, type, ret))
			return error_no_memory();
	}
	return NULL;
}
