/*
 * `rbdump heap -f objspace`: writes all objects of a heap, for other tools (objspace_dump.h). If options->stop is set, the
 * objects are written to memory while the process is stopped, and to the output afterwards.
 */
#ifndef RBDUMP_HEAP_DUMP_H
#define RBDUMP_HEAP_DUMP_H

#include "heap/options.h"
#include "session/session.h"

/*
 * Writes the objects of an open target. Messages on standard error say what is missing or doubtful. On success, *status
 * receives EXIT_COMPLETE, or EXIT_PARTIAL if part of the heap could not be read.
 */
struct error *heap_dump(const struct heap_options *options, struct session *session, enum exit_status *status);

#endif
