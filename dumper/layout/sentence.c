#include "sentence.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

char *sentence(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	for (char *c = text; *c; c++) {
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
	}
	return text;
}
