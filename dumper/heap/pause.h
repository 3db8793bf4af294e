/*
 * The limit for the time during which a process is stopped while its heap is read.
 */
#ifndef RBDUMP_PAUSE_H
#define RBDUMP_PAUSE_H

#include "heap/options.h"
#include "session/session.h"

/*
 * The error that the process would be stopped, or was stopped, for too long.
 *   how  "would be stopped for about" or "was stopped for"
 */
struct error *pause_too_long(const struct heap_options *options, const struct session *session, const char *how,
			     double ms);

/* The error that the user has ended the reading (progress.h) before the process could be looked at while it was stopped. */
struct error *pause_interrupted(const struct session *session);

#endif
