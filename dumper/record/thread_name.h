/*
 * The names of threads.
 */
#ifndef RBDUMP_THREAD_NAME_H
#define RBDUMP_THREAD_NAME_H

#include <stdint.h>

#include "session/session.h"

/* The name of a thread, as text, read from the target. NULL if it has none, or cannot be read. The caller frees it. */
char *thread_name_read(const struct session *session, uint64_t value);

#endif
