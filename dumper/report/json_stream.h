/*
 * Writes JSON piece by piece, so that a large document need not fit into memory. The caller must close all objects and
 * arrays that it has opened. The innermost object or array must be closed first.
 *
 * Texts must be valid UTF-8. A text may contain any characters, because text_print_json() escapes the text. The code
 * that opened the stream must check the stream for errors.
 */
#ifndef RBDUMP_JSON_STREAM_H
#define RBDUMP_JSON_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_stream {
	FILE *stream;
	bool follows; /* the innermost open object or array is not empty, so a comma must precede the next value */
};

/*
 * Each of these functions writes one value, or opens an object or array. All keys are constants in the code of
 * rbdump. In an array, and for the outermost value, `key` must be NULL.
 */
void json_stream_object(struct json_stream *json, const char *key);
void json_stream_array(struct json_stream *json, const char *key);
void json_stream_string(struct json_stream *json, const char *key, const char *text); /* NULL is written as null */
void json_stream_integer(struct json_stream *json, const char *key, int64_t value);
void json_stream_real(struct json_stream *json, const char *key, double value); /* must be finite */
void json_stream_boolean(struct json_stream *json, const char *key, bool value);
void json_stream_null(struct json_stream *json, const char *key);
/* Writes a time in milliseconds, with six decimals. No nanosecond is lost, so sums of these times are exact. */
void json_stream_milliseconds(struct json_stream *json, const char *key, uint64_t ns);

/*
 * json_stream_end_object() closes the innermost open object. json_stream_end_array() closes the innermost open array.
 */
void json_stream_end_object(struct json_stream *json);
void json_stream_end_array(struct json_stream *json);

#endif
