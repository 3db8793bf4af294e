/*
 * JSON that is written as it comes, so that a large one need not be in memory: what is opened must be closed, in order.
 *
 * Texts are valid UTF-8 and may hold anything else: text_print_json() escapes what must not be there as it is. Errors
 * of the stream are left to who has opened it.
 */
#ifndef RBDUMP_JSON_STREAM_H
#define RBDUMP_JSON_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_stream {
	FILE *stream;
	bool follows; /* there is a value before this one, in the same object or array */
};

/* All of these write one value. The key is of our own, plain text, and NULL in an array and for the outermost value. */
void json_stream_object(struct json_stream *json, const char *key);
void json_stream_array(struct json_stream *json, const char *key);
void json_stream_string(struct json_stream *json, const char *key, const char *text); /* NULL: null */
void json_stream_integer(struct json_stream *json, const char *key, int64_t value);
void json_stream_real(struct json_stream *json, const char *key, double value); /* which is finite */
void json_stream_boolean(struct json_stream *json, const char *key, bool value);
void json_stream_null(struct json_stream *json, const char *key);
/* Nanoseconds, in milliseconds: all digits, so that sums come out right. */
void json_stream_milliseconds(struct json_stream *json, const char *key, uint64_t ns);

void json_stream_end_object(struct json_stream *json);
void json_stream_end_array(struct json_stream *json);

#endif
