#include "layout/build_id.h"

#include <stdio.h>
#include <stdlib.h>

char *build_id_digits(const void *bits, ssize_t length)
{
	const unsigned char *bytes = bits;
	char *text;

	if (length <= 0 || length > BUILD_ID_MAX)
		return NULL;
	text = malloc(2 * (size_t)length + 1);
	for (ssize_t i = 0; text && i < length; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}
