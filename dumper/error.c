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
	error->no_ruby = false;
	error->message = message;
	return error;
}

__attribute__((format(printf, 1, 0))) static char *format_message(const char *format, va_list args)
{
	char *message;

	return vasprintf(&message, format, args) < 0 ? NULL : message;
}

struct error *error_create(enum exit_status status, const char *format, ...)
{
	va_list args;
	char *message;

	va_start(args, format);
	message = format_message(format, args);
	va_end(args);
	return error_take(status, message);
}

struct error *error_no_ruby(const char *format, ...)
{
	struct error *error;
	va_list args;

	va_start(args, format);
	error = error_take(EXIT_NO_RUBY, format_message(format, args));
	va_end(args);
	if (error != &no_memory)
		error->no_ruby = true;
	return error;
}

void error_destroy(struct error *error)
{
	if (!error || error == &no_memory)
		return;
	free(error->message);
	free(error);
}
