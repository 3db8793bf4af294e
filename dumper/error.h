/*
 * Errors carry what a person needs, what went wrong, why, and what to do, as one sentence, and the exit status that
 * main() ends with. A function that can fail returns `struct error *`, NULL if all is well; the caller owns it.
 */
#ifndef RBDUMP_ERROR_H
#define RBDUMP_ERROR_H

#include <stdbool.h>

enum exit_status {
	EXIT_COMPLETE = 0,	/* every thread's and fiber's stack is there, and complete */
	EXIT_PARTIAL = 1,	/* some thread is truncated, torn or unreadable, or may be missing */
	EXIT_FAILED = 2,	/* nothing could be done */
	EXIT_NO_RUBY = 3,	/* not a Ruby, or no layout for it */
	EXIT_NO_PERMISSION = 4, /* the kernel refuses access to the process */
	EXIT_USAGE = 64,	/* the command line makes no sense */
};

struct error {
	enum exit_status status;
	bool no_ruby;  /* with EXIT_NO_RUBY: it is no Ruby at all, so that no layout would help */
	char *message; /* one sentence, no newline, no "rbdump: " in front */
};

/* Makes an error; printf-like. Never fails: without memory it returns a static "out of memory". */
struct error *error_create(enum exit_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));

/* The same of something that is no Ruby at all. */
struct error *error_no_ruby(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

/* Makes an error of a malloc'ed sentence, which it takes over. */
struct error *error_take(enum exit_status status, char *message) __attribute__((returns_nonnull));

/* The static "out of memory" error. */
struct error *error_no_memory(void) __attribute__((returns_nonnull));

/* Frees an error; NULL and the static one are fine. */
void error_destroy(struct error *error);

#endif
