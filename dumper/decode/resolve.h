/*
 * From control frames to what Ruby itself would print of them: kinds, labels, names, paths, lines. Facts:
 * vm_backtrace.c (rb_ec_partial_backtrace_object; in 2.7, backtrace_each), 1.9.3 to 4.0.5 and head.
 */
#ifndef RBDUMP_RESOLVE_H
#define RBDUMP_RESOLVE_H

#include "trace/trace.h"
#include "vm/collections.h"
#include "vm/frame.h"

/* What was read of code and methods is kept here: it holds for one snapshot of the memory, unless resolver_keep(). */
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

/*
 * What follows is for one that is kept for stacks of many moments, while the target goes on. What was read of code and
 * of a method is then known as of a moment, by either of two proofs:
 *   - nothing can have been freed or moved between that moment and the one at which it was read
 *     (collections_same_objects()); or
 *   - it was read before that moment, and read again after it, and every byte that it was made from was the same, those
 *     of what was copied with the stack at that moment included.
 * What a program changes in place is seen some seconds later.
 */

/* From now on it is kept. */
void resolver_keep(struct resolver *resolver);

/* Gives it another memory, of the same target. */
void resolver_use(struct resolver *resolver, struct memory *memory);

/*
 * Whether resolver_stack() will need nothing but what is known as of the moment of the stack.
 *   then     how far the collector was at that moment
 *   then_ns  that moment, by CLOCK_MONOTONIC
 */
bool resolver_knows(const struct resolver *resolver, const struct stack *stack, const struct collections *then,
		    uint64_t then_ns);

/*
 * Reads again what was read before, of all that the stack needs, and forgets what is another by now. To be called
 * before resolver_stack() if resolver_knows() says no. Its memory has no page from before that moment.
 */
void resolver_verify(struct resolver *resolver, const struct stack *stack, const struct collections *then,
		     uint64_t then_ns);

/*
 * Says, after resolver_stack(), how far the collector is by now. Returns whether all that was used is known as of the
 * moment of the stack.
 *   now_ns  by CLOCK_MONOTONIC, after all was read
 */
bool resolver_settle(struct resolver *resolver, const struct stack *stack, const struct collections *then,
		     const struct collections *now, uint64_t now_ns);

/* How many bytes what is kept takes, about. */
size_t resolver_bytes(const struct resolver *resolver);

/* A copy of a String of the target as text, owned by the trace; NULL if it is nil or cannot be read. */
const char *resolver_string(struct resolver *resolver, uint64_t value);

#endif
