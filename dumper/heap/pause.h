/*
 * Errors of a reading for which a process is stopped (--stop).
 */
#ifndef RBDUMP_PAUSE_H
#define RBDUMP_PAUSE_H

#include "heap/options.h"
#include "session/session.h"

/*
 * Returns the error that says that the process would be stopped, or was stopped, for too long.
 *   how  "would be stopped for about" or "was stopped for"
 */
struct error *pause_too_long(const struct heap_options *options, const struct session *session, const char *how,
			     double ms);

/*
 * Returns the error that says that the user has ended the reading (progress.h) before the heap of the stopped process
 * was read.
 */
struct error *pause_interrupted(const struct session *session);

#endif
