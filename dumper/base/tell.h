/*
 * Prints error messages to standard error.
 */
#ifndef RBDUMP_TELL_H
#define RBDUMP_TELL_H

#include "base/error.h"

/*
 * Writes "rbdump: MESSAGE", with control characters escaped, and frees the error. Returns the exit status of the error.
 */
int tell_error(struct error *error);

#endif
