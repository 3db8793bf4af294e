/*
 * Makes parts of the JSON that describes the references in a heap: the first members of the JSON, and single values.
 */
#ifndef RBDUMP_HEAD_JSON_H
#define RBDUMP_HEAD_JSON_H

#include "base/text.h"
#include "heap/census.h"
#include "heap/heap_reading.h"
#include "heap/options.h"

struct json_t;

/*
 * Returns a new object (jansson's json_t) with the first members: what the target is, how its heap was read, and why the
 * result is doubtful. Returns NULL if there is not enough memory.
 *   pause_ms   for how long the process was stopped; 0: it was not stopped
 *   collected  a collection began while the heap was read, or rbdump cannot know whether one began
 */
struct json_t *head_json(const struct target_options *target, const struct heap_reading *reading, double pause_ms,
			 bool collected);

/*
 * These functions make JSON values. An integer above INT64_MAX becomes INT64_MAX. An empty text becomes null.
 * head_json_text() clears `text`.
 */
struct json_t *head_json_integer(uint64_t value);
struct json_t *head_json_address(uint64_t address); /* 0: null */
struct json_t *head_json_text(struct text *text);

/*
 * Writes a value, with a newline, and frees the value. Fails if the value is NULL, or if there is not enough memory. The
 * caller checks the stream for errors.
 */
struct error *head_json_write(struct json_t *root, FILE *stream);

#endif
