/*
 * Identifies a thread in text for people.
 */
#ifndef RBDUMP_IDENTITY_H
#define RBDUMP_IDENTITY_H

#include <stdio.h>

#include "trace/trace.h"

/*
 * Writes the identity of a thread: its tid, whether it is the main thread, its name, and its ractor. Each of these parts
 * begins with a space.
 */
void identity_print(const struct trace_thread *thread, bool with_ractor, FILE *stream);

#endif
