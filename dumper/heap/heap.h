/*
 * The verb heap: reads the heap of a Ruby process or of a core. Prints how many objects of each class the heap contains,
 * what keeps objects alive, or how much memory each object keeps alive; or writes all objects for other tools.
 */
#ifndef RBDUMP_HEAP_H
#define RBDUMP_HEAP_H

#include "heap/options.h"

/*
 * Prints to standard output, or to options->output. On success, *status receives EXIT_COMPLETE, or EXIT_PARTIAL if part of the
 * heap could not be read. Fails, among other reasons, if the layout lacks a fact that is needed, or if the process would be
 * stopped for longer than `max_pause_ms`.
 */
struct error *heap_main(const struct heap_options *options, enum exit_status *status);

#endif
