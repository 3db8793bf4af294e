/*
 * Reads the names of threads.
 */
#ifndef RBDUMP_THREAD_NAME_H
#define RBDUMP_THREAD_NAME_H

#include <stdint.h>

#include "session/session.h"

/*
 * Reads the name of a thread from the target. Like resolver_string(), cuts a name that is longer than about
 * VALUE_NAME_MAX bytes. Returns NULL if the thread has no name, or if the name cannot be read. The caller frees the
 * name.
 *   value  the VALUE of the name in the target
 */
char *thread_name_read(const struct session *session, uint64_t value);

#endif
