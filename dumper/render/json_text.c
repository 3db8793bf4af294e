#include "render/json_text.h"

#include <stdlib.h>
#include <string.h>

#include "decode/text.h"

/*
 * What jansson gives at once never ends within a character. Below U+0020 there are only the newlines that it puts
 * between values: it escapes those of a string itself.
 */
static int write_piece(const char *piece, size_t size, void *stream)
{
	char *text = strndup(piece, size);

	if (!text)
		return -1;
	for (const char *at = text; *at; at++) {
		uint32_t point;
		size_t control = text_control(at, &point);

		if (control == 0 || point < 0x20) {
			putc(*at, stream);
			continue;
		}
		fprintf(stream, "\\u%04x", point);
		at += control - 1;
	}
	free(text);
	return ferror((FILE *)stream) ? -1 : 0;
}

bool json_text_write(const json_t *value, size_t flags, FILE *stream)
{
	return json_dump_callback(value, write_piece, stream, flags) == 0;
}
