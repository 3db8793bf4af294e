/*
 * Compares a trace with the trace of the previous look: which threads have moved, which are new, and which are gone.
 */
#ifndef RBDUMP_PROGRESS_H
#define RBDUMP_PROGRESS_H

#include "trace/trace.h"

/*
 * Sets `progress.moved` of each thread in `now`, and lists in `now->look` the threads that are gone. Suspended fibers are not
 * listed. The caller must have set the other members of `progress` in `now`. The function clears `has_cpu`, `cpu_ns` and
 * `slept` if the native thread may have run another Ruby thread since the previous look. Returns false if there is not enough
 * memory.
 *   before  the trace of the previous look
 */
bool trace_compare(const struct trace *before, struct trace *now);

#endif
