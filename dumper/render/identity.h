/*
 * Names a thread in text for people.
 */
#ifndef RBDUMP_IDENTITY_H
#define RBDUMP_IDENTITY_H

#include <stdio.h>

#include "trace/trace.h"

/* Writes the identity of a thread, after a space: its tid, whether it is the main thread, its name, and its ractor. */
void identity_print(const struct trace_thread *thread, bool with_ractor, FILE *stream);

#endif
