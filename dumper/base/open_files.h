/*
 * The limit on open files (RLIMIT_NOFILE). A process of rbdump that samples a target has several files open for each
 * thread of the target.
 */
#ifndef RBDUMP_OPEN_FILES_H
#define RBDUMP_OPEN_FILES_H

#include "base/error.h"

/*
 * Raises the soft limit on open files if this limit is too low for a dump. Fails if the hard limit is also too low.
 * Without this check, a dump could run out of file descriptors while it reads a layout, a library or a thread's state.
 * The error message of such a dump would not say that the limit on open files is the cause.
 */
struct error *open_files_check(void);

/* Raises the soft limit to the hard limit. */
void open_files_allow(void);

#endif
