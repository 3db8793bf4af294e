#include "layout/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *finding(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	return text ? text : strdup("out of memory");
}

char *unreadable(const struct access *access, const char *what)
{
	return finding("%s cannot be read (at 0x%llx)", what, (unsigned long long)access->address);
}
