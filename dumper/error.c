#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static char no_memory_message[] = "out of memory";
static struct error no_memory = {.status = EXIT_FAILED, .message = no_memory_message};

struct error *error_no_memory(void)
{
	return &no_memory;
}

struct error *error_take(enum exit_status status, char *message)
{
	struct error *error = message ? malloc(sizeof(*error)) : NULL;

	if (!error) {
		free(message);
		return &no_memory;
	}
	error->status = status;
	error->message = message;
	return error;
}

struct error *error_create(enum exit_status status, const char *format, ...)
{
	va_list args;
	char *message;

	va_start(args, format);
	if (vasprintf(&message, format, args) < 0)
		message = NULL;
	va_end(args);
	return error_take(status, message);
}

void error_destroy(struct error *error)
{
	if (!error || error == &no_memory)
		return;
	free(error->message);
	free(error);
}
