#include "experiment/counts.h"

/* The most keys of one object. */
#define KEYS_MAX 20000u

void counts_add(json_t *counts, const char *key)
{
	json_t *count = json_object_get(counts, key);

	if (!count && json_object_size(counts) >= KEYS_MAX) {
		key = "(others)";
		count = json_object_get(counts, key);
	}
	if (count)
		json_integer_set(count, json_integer_value(count) + 1);
	else
		json_object_set_new(counts, key, json_integer(1));
}
