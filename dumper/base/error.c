#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static char no_memory_message[] = "out of memory";
static struct error no_memory = {.status = EXIT_FAILED, .message = no_memory_message};

struct error *error_no_memory(void)
{
	return &no_memory;
}

/* Makes an error of a malloc'ed message, which it takes; NULL: there was no memory for it. */
static struct error *take(enum exit_status status, char *message)
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
	return take(status, message);
}

struct error *error_no_ruby(const char *format, ...)
{
	struct error *error;
	va_list args;

	va_start(args, format);
	error = take(EXIT_NO_RUBY, format_message(format, args));
	va_end(args);
	if (error != &no_memory)
		error->no_ruby = true;
	return error;
}

/* Gives an error, not the static one, the message that two texts make; the message stays if there is no memory. */
static void join(struct error *error, const char *first, const char *between, const char *second)
{
	char *message;

	if (!first || !second || asprintf(&message, "%s%s%s", first, between, second) < 0)
		return;
	free(error->message);
	error->message = message;
}

struct error *error_prefix(struct error *error, const char *format, ...)
{
	char *words;
	va_list args;

	if (!error || error == &no_memory)
		return error;
	va_start(args, format);
	words = format_message(format, args);
	va_end(args);
	join(error, words, ": ", error->message);
	free(words);
	return error;
}

struct error *error_append(struct error *error, const char *format, ...)
{
	char *words;
	va_list args;

	if (!error || error == &no_memory)
		return error;
	va_start(args, format);
	words = format_message(format, args);
	va_end(args);
	join(error, error->message, "", words);
	free(words);
	return error;
}

void error_set_status(struct error *error, enum exit_status status)
{
	if (error && error != &no_memory)
		error->status = status;
}

void error_destroy(struct error *error)
{
	if (!error || error == &no_memory)
		return;
	free(error->message);
	free(error);
}
