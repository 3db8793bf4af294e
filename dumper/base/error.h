/*
 * An error: the exit status of main(), and a sentence that tells the user what went wrong, why, and what to do. A
 * function that can fail returns a `struct error *`, which is NULL on success. The caller owns the error.
 *
 * A message may contain arbitrary bytes from a file or from the target. Code that prints a message must escape these
 * bytes (see tell.h).
 */
#ifndef RBDUMP_ERROR_H
#define RBDUMP_ERROR_H

#include <stdbool.h>

enum exit_status {
	EXIT_COMPLETE = 0,	/* the stacks of all threads and fibers were found, and are complete */
	EXIT_PARTIAL = 1,	/* at least one stack is truncated, torn or unreadable, or might be missing */
	EXIT_FAILED = 2,	/* rbdump failed for a reason that has no exit status of its own */
	EXIT_NO_RUBY = 3,	/* the target is not a Ruby, or rbdump has no layout for this Ruby */
	EXIT_NO_PERMISSION = 4, /* the kernel refuses access to the process */
	EXIT_USAGE = 64,	/* the command line is wrong */
};

struct error {
	enum exit_status status;
	bool no_ruby;  /* the target is not a Ruby at all, so no layout would help; true only with EXIT_NO_RUBY */
	char *message; /* one sentence, without a newline, and without "rbdump: " in front */
};

/*
 * Makes an error. The message is formatted as with printf(3). Never fails: if there is not enough memory, returns the
 * static error of error_no_memory().
 */
struct error *error_create(enum exit_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));

/* Makes an error with EXIT_NO_RUBY, for a target that is not a Ruby at all. Sets `no_ruby`. */
struct error *error_no_ruby(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

/*
 * The functions error_prefix() and error_append() format a text as printf(3) does. The function error_prefix() puts the
 * text and ": " in front of the message of an error. The function error_append() appends the text to the message. The
 * functions error_prefix() and error_append() return the error, or NULL if `error` is NULL. They never fail: if there
 * is not enough memory, they leave the message unchanged. The message of the static error (see error_no_memory()) never
 * changes.
 */
struct error *error_prefix(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct error *error_append(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Changes the exit status of an error. Does nothing if `error` is NULL, or if it is the static error. */
void error_set_status(struct error *error, enum exit_status status);

/* Returns the static error. Its message is "out of memory". */
struct error *error_no_memory(void) __attribute__((returns_nonnull));

/* Frees an error. Does nothing if `error` is NULL or the static error. */
void error_destroy(struct error *error);

#endif
