/*
 * Prints error messages to standard error, and checks whether all output was written to standard output.
 */
#ifndef RBDUMP_TELL_H
#define RBDUMP_TELL_H

#include "base/error.h"

/*
 * Writes "rbdump: MESSAGE", with control characters escaped, and frees the error. Returns the exit status of the error.
 */
int tell_error(struct error *error);

/* Flushes standard output. Fails if any of the output could not be written. */
struct error *finish_output(void);

#endif
