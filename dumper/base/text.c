#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void text_clear(struct text *text)
{
	free(text->data);
	*text = (struct text){0};
}

static char *reserve(struct text *text, size_t length)
{
	text->failed |= !array_make_room(text->data, text->capacity, text->length + length + 1);
	return text->failed ? NULL : text->data + text->length;
}

static void append(struct text *text, const char *bytes, size_t length)
{
	char *to = reserve(text, length);

	if (!to)
		return;
	memcpy(to, bytes, length);
	to[length] = '\0';
	text->length += length;
}

/* Unicode 15, table 3-7: well-formed UTF-8 byte sequences. */
size_t text_character(const uint8_t *bytes, size_t length)
{
	uint8_t low = 0x80, high = 0xbf;
	size_t size;

	if (length == 0 || bytes[0] == 0)
		return 0;
	if (bytes[0] < 0x80)
		return 1;
	if (bytes[0] < 0xc2 || bytes[0] > 0xf4)
		return 0;
	size = bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
	if (bytes[0] == 0xe0)
		low = 0xa0;
	else if (bytes[0] == 0xed)
		high = 0x9f;
	else if (bytes[0] == 0xf0)
		low = 0x90;
	else if (bytes[0] == 0xf4)
		high = 0x8f;
	if (length < size || bytes[1] < low || bytes[1] > high)
		return 0;
	for (size_t i = 2; i < size; i++)
		if (bytes[i] < 0x80 || bytes[i] > 0xbf)
			return 0;
	return size;
}

void text_add(struct text *text, const void *bytes, size_t length)
{
	const uint8_t *at = bytes, *end = at + length;

	while (at < end) {
		size_t size = text_character(at, (size_t)(end - at));
		char escaped[5];

		if (size > 0) {
			append(text, (const char *)at, size);
			at += size;
			continue;
		}
		snprintf(escaped, sizeof(escaped), "\\x%02X", *at++);
		append(text, escaped, 4);
	}
}

/* The code point of a well-formed character. */
static uint32_t code_point(const uint8_t *at, size_t size)
{
	uint32_t point = size == 1 ? at[0] : at[0] & (0x7fu >> size);

	for (size_t i = 1; i < size; i++)
		point = point << 6 | (at[i] & 0x3fu);
	return point;
}

/* Ascending; in Unicode 15: Cc, Zl, Zp, Bidi_Control, and interlinear annotation. */
static const struct {
	uint32_t first, last;
} controls[] = {
    {0x00, 0x1f}, {0x7f, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfff9, 0xfffb},
};

size_t text_control(const void *bytes, size_t length, uint32_t *ret)
{
	const uint8_t *at = bytes;
	size_t size = text_character(at, length);

	if (size == 0)
		return 0;
	*ret = code_point(at, size);
	for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++)
		if (*ret >= controls[i].first && *ret <= controls[i].last)
			return size;
	return 0;
}

void text_print_json(const char *text, FILE *stream)
{
	const char *end = text + strlen(text);

	putc('"', stream);
	while (text < end) {
		uint32_t point;
		size_t control = text_control(text, (size_t)(end - text), &point);

		/* All are in the basic plane, so none needs a surrogate pair. */
		if (control > 0)
			fprintf(stream, "\\u%04x", (unsigned int)point);
		else if (strchr("\"\\", *text))
			fprintf(stream, "\\%c", *text);
		else if (strchr("<>&", *text))
			fprintf(stream, "\\u%04x", (unsigned int)(unsigned char)*text);
		else
			putc(*text, stream);
		text += control > 0 ? control : 1;
	}
	putc('"', stream);
}

void text_print(const char *bytes, FILE *stream)
{
	const uint8_t *at = (const uint8_t *)bytes, *end = at + strlen(bytes);

	while (at < end) {
		size_t size = text_character(at, (size_t)(end - at));
		uint32_t point;
		bool control = text_control(at, (size_t)(end - at), &point) > 0;

		for (size_t i = 0; i < (size > 0 ? size : 1); i++)
			fprintf(stream, size == 0 || control ? "\\x%02X" : "%c", at[i]);
		at += size > 0 ? size : 1;
	}
}

void text_format(struct text *text, const char *format, ...)
{
	va_list args;
	char *formatted;
	int length;

	va_start(args, format);
	length = vasprintf(&formatted, format, args);
	va_end(args);
	if (length < 0) {
		text->failed = true;
		return;
	}
	append(text, formatted, (size_t)length);
	free(formatted);
}

void text_shorten(struct text *text, size_t before, size_t max)
{
	if (text->length - before <= max)
		return;
	text->length = before + max;
	while (text->length > before && (text->data[text->length] & 0xc0) == 0x80)
		text->length--;
	text->data[text->length] = '\0';
	text_format(text, "…");
}
