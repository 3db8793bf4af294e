/*
 * Reads the names of threads.
 */
#ifndef RBDUMP_THREAD_NAME_H
#define RBDUMP_THREAD_NAME_H

#include <stdint.h>

#include "session/session.h"

/*
 * Reads the name of a thread from the target, as resolver_string() does. Returns NULL if the thread has no name, or if
 * the name cannot be read. The caller frees the name.
 *   value  the name in the target, as a Ruby value
 */
char *thread_name_read(const struct session *session, uint64_t value);

#endif
