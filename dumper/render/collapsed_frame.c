#include "render/collapsed_frame.h"

/* The length of a character that is not allowed, because it would end a frame or the line, or control a terminal. Else 0. */
static size_t special(const char *at, size_t length)
{
	uint32_t point;

	return *at == ';' ? 1 : text_control(at, length, &point);
}

void collapsed_add_frame(struct text *text, const char *name, size_t length)
{
	size_t done = 0, i = 0;

	while (i < length) {
		const size_t bytes = special(name + i, length - i);

		if (bytes == 0) {
			i++;
			continue;
		}
		text_add(text, name + done, i - done);
		if (name[i] == ';')
			text_add(text, ":", 1);
		else
			for (size_t k = 0; k < bytes; k++)
				text_format(text, "\\x%02X", (unsigned int)(unsigned char)name[i + k]);
		i += bytes;
		done = i;
	}
	if (length > done)
		text_add(text, name + done, length - done);
}
