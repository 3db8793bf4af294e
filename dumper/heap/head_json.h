/*
 * Makes the first members of the JSON that each look at the references of a heap writes, and single values for this JSON.
 */
#ifndef RBDUMP_HEAD_JSON_H
#define RBDUMP_HEAD_JSON_H

#include "base/text.h"
#include "heap/census.h"
#include "heap/heap_reading.h"
#include "heap/options.h"

struct json_t;

/*
 * Returns a new object (jansson's json_t): the target, how it was read, and what is doubtful. NULL if there is not enough
 * memory.
 *   pause_ms   for how long the process was stopped; 0: it was not
 *   collected  a collection has begun while the heap was read, or Ruby does not tell
 */
struct json_t *head_json(const struct target_options *target, const struct heap_reading *reading, double pause_ms,
			 bool collected);

/* Make values. An integer above INT64_MAX becomes INT64_MAX. An empty text becomes null. The text is always cleared. */
struct json_t *head_json_integer(uint64_t value);
struct json_t *head_json_address(uint64_t address); /* 0: null */
struct json_t *head_json_text(struct text *text);

/*
 * Writes a value, with a newline, and frees it. Fails if it is NULL, or if there is not enough memory. The caller checks
 * the stream.
 */
struct error *head_json_write(struct json_t *root, FILE *stream);

#endif
