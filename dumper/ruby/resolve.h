/*
 * Resolves control frames: finds the kind, label, name, path and line of each frame. Based on Ruby's sources, 1.9.3 to
 * 4.0.5 and head: vm_backtrace.c (rb_ec_partial_backtrace_object; in 2.7, backtrace_each).
 */
#ifndef RBDUMP_RESOLVE_H
#define RBDUMP_RESOLVE_H

#include "ruby/collections.h"
#include "ruby/frame.h"
#include "trace/trace.h"

/*
 * A resolver keeps the data that it has read about code and methods. Without a call of resolver_keep(), the kept data
 * is valid only for one snapshot of the memory.
 */
struct resolver;

/*
 * Creates a resolver. Returns NULL if there is not enough memory.
 *   ruby   must outlive the resolver; ruby->memory must stay the same snapshot
 *   trace  receives the strings; must outlive the resolver
 */
struct resolver *resolver_create(const struct ruby *ruby, struct trace *trace);
void resolver_destroy(struct resolver *resolver); /* NULL is fine */

/*
 * Fills in a thread's frames. Stops early if the time limit is reached (see memory_is_over()). Also sets the thread's
 * verdict and reason. The verdict and the reason depend on this stack and on the data to which its frames refer, but
 * not on other stacks. Returns false if there is not enough memory.
 */
bool resolver_stack(struct resolver *resolver, const struct stack *stack, struct trace_thread *thread);

/*
 * The following functions are for a resolver that is used for many stacks while the target runs. The moment of a stack
 * is the time at which the stack was copied. The kept data about code or a method is right for this moment if one of
 * these conditions is true:
 * - It is certain that no object was freed or moved between the moment of the stack and the moment when the data was
 *   read (see collections_same_objects()).
 * - The code and the method were old objects when the data was read, and it is certain that no old object was freed or
 *   moved between this read and the moment of the stack (see collections_same_old_objects()).
 * - The data was read before the moment of the stack. After this moment, the method entry still had the same definition,
 *   and the code was still the same, too (see method_identity.h).
 * - The data was read before the moment of the stack and again after it, and both reads gave the same bytes. If
 *   some of these bytes are also in the stack copy, they have the same values there.
 * rbdump can take some seconds to notice that a program has changed data in place, without making a new object. For
 * example, a program can give a name to an anonymous class.
 */

/* After this call, the resolver keeps all data that it reads, and uses this data for later stacks, too. */
void resolver_keep(struct resolver *resolver);

/* Replaces the resolver's memory with another snapshot of the same target. */
void resolver_use(struct resolver *resolver, struct memory *memory);

/*
 * Whether all data that resolver_stack() needs is already kept, and is known to be right for the moment of the stack.
 *   then     the state of the garbage collector at the moment of the stack
 *   then_ns  the moment of the stack, by CLOCK_MONOTONIC
 */
bool resolver_knows(struct resolver *resolver, const struct stack *stack, const struct collections *then,
		    uint64_t then_ns);

/*
 * Checks the kept data that the stack needs. Data that is known to be right is not checked. To check data, the function
 * reads the data again. The function forgets data that has changed. Call this function before resolver_stack() if
 * resolver_knows() returned false. The resolver's memory must not contain pages that were copied before the moment of
 * the stack.
 */
void resolver_verify(struct resolver *resolver, const struct stack *stack, const struct collections *then,
		     uint64_t then_ns);

/*
 * Call this function after resolver_stack(). Returns whether all data that resolver_stack() has used is known to be
 * right for the moment of the stack.
 *   now        the state of the garbage collector after everything was read
 *   lacks_old  whether the stack copy lacked bytes of objects that were old at the moment of the stack. If so, these
 *              bytes were read later, but before the moment of `now`
 *   now_ns     the time by CLOCK_MONOTONIC, taken after everything was read
 */
bool resolver_settle(struct resolver *resolver, const struct collections *then, const struct collections *now,
		     bool lacks_old, uint64_t now_ns);

/* The approximate size of the kept data, in bytes. */
size_t resolver_bytes(const struct resolver *resolver);

/*
 * A copy of a String of the target, as text. A String that is longer than about VALUE_NAME_MAX bytes is cut, and "…" stands
 * for the rest. The trace owns the copy. NULL if `value` is nil, or if the String cannot be read.
 */
const char *resolver_string(struct resolver *resolver, uint64_t value);

#endif
