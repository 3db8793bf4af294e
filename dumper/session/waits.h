/*
 * Finds out what each thread and suspended fiber of a trace waits for, and which Mutexes it holds. This header is used
 * only inside session/.
 */
#ifndef RBDUMP_SESSION_WAITS_H
#define RBDUMP_SESSION_WAITS_H

#include "ruby/frame.h"
#include "trace/trace.h"

/*
 * Fills in `wait` and `holds` of each entry of a trace. Data that cannot be read stays unknown, and does not count as
 * missing memory (memory_missed()). There are two reasons why data cannot be read: it was not copied in time, or the
 * target's memory contradicts itself. Returns false if there is not enough memory.
 *   trace       its threads come first, and then its fibers
 *   stacks      the stack of each entry
 *   nr_threads  how many entries are threads
 */
bool session_waits_read(const struct ruby *ruby, struct trace *trace, const struct stack *stacks, size_t nr_threads);

#endif
