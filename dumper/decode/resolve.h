/*
 * From control frames to what Ruby itself would print of them: kinds, labels, names, paths, lines. Facts:
 * vm_backtrace.c (rb_ec_partial_backtrace_object; in 2.7, backtrace_each), 1.9.3 to 4.0.5 and head.
 */
#ifndef RBDUMP_RESOLVE_H
#define RBDUMP_RESOLVE_H

#include "trace/trace.h"
#include "vm/frame.h"

/* What was read of code and methods is kept here: it holds for one snapshot of the memory only. */
struct resolver;

/*
 *   ruby   must outlive the resolver, and its memory must not change
 *   trace  gets the strings
 * Returns NULL if out of memory.
 */
struct resolver *resolver_create(const struct ruby *ruby, struct trace *trace);
void resolver_destroy(struct resolver *resolver); /* NULL is fine */

/*
 * Fills in a thread's frames, as many as there is time for (memory_is_over()), and its verdict and reason as far as
 * they follow from its stack. Returns false if out of memory.
 */
bool resolver_stack(struct resolver *resolver, const struct stack *stack, struct trace_thread *thread);

/* Whether all that resolver_stack() would read of code and methods is kept already: nothing but lines is read anew. */
bool resolver_knows(const struct resolver *resolver, const struct stack *stack);

/* A copy of a String of the target as text, owned by the trace; NULL if it is nil or cannot be read. */
const char *resolver_string(struct resolver *resolver, uint64_t value);

#endif
