/*
 * `rbdump heap --why` and `--dominators`: what keeps objects alive. Stops a live process if options->stop is set.
 * Otherwise, if a garbage collection has begun while the heap was read, reads the heap again, a few times at most.
 */
#ifndef RBDUMP_WHY_H
#define RBDUMP_WHY_H

#include "heap/options.h"
#include "session/session.h"

/*
 * Prints a shortest path from the roots to the object at options->why_address. If this address is 0, options->why is the
 * name of a class, or of a kind of internal objects. In this case, prints the shortest paths to all objects of this class
 * or kind. On success, *status receives EXIT_COMPLETE, or EXIT_PARTIAL if part of the heap could not be read.
 */
struct error *heap_why(const struct heap_options *options, struct session *session, enum exit_status *status);

/*
 * Prints a tree of the dominators, which shows how much memory would be freed if an object were garbage. Sets *status
 * as heap_why() does.
 */
struct error *heap_dominators(const struct heap_options *options, struct session *session, enum exit_status *status);

#endif
