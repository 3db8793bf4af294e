#include "report/json_stream.h"

#include <inttypes.h>

#include "base/text.h"

/* Writes what comes before a value. */
static void begin(struct json_stream *json, const char *key)
{
	if (json->follows)
		putc(',', json->stream);
	json->follows = true;
	if (key) {
		text_print_json(key, json->stream);
		putc(':', json->stream);
	}
}

void json_stream_object(struct json_stream *json, const char *key)
{
	begin(json, key);
	putc('{', json->stream);
	json->follows = false;
}

void json_stream_array(struct json_stream *json, const char *key)
{
	begin(json, key);
	putc('[', json->stream);
	json->follows = false;
}

void json_stream_string(struct json_stream *json, const char *key, const char *text)
{
	begin(json, key);
	if (text)
		text_print_json(text, json->stream);
	else
		fputs("null", json->stream);
}

void json_stream_integer(struct json_stream *json, const char *key, int64_t value)
{
	begin(json, key);
	fprintf(json->stream, "%" PRId64, value);
}

void json_stream_real(struct json_stream *json, const char *key, double value)
{
	begin(json, key);
	fprintf(json->stream, "%.17g", value);
}

void json_stream_boolean(struct json_stream *json, const char *key, bool value)
{
	begin(json, key);
	fputs(value ? "true" : "false", json->stream);
}

void json_stream_null(struct json_stream *json, const char *key)
{
	begin(json, key);
	fputs("null", json->stream);
}

void json_stream_milliseconds(struct json_stream *json, const char *key, uint64_t ns)
{
	begin(json, key);
	fprintf(json->stream, "%" PRIu64 ".%06u", ns / 1000000, (unsigned int)(ns % 1000000));
}

void json_stream_end_object(struct json_stream *json)
{
	putc('}', json->stream);
	json->follows = true;
}

void json_stream_end_array(struct json_stream *json)
{
	putc(']', json->stream);
	json->follows = true;
}
