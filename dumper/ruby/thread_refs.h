/*
 * The references of a Thread and of a Fiber: the members of their structs and of their execution contexts, what their
 * control frames have, and the words of their VM stacks. Some words are given conservatively: the words of native
 * stacks, registers, and the words of structs that belong to no member in the layout. Ruby's collector looks at native
 * stacks and registers in the same way. If a running thread uses a native stack, only the thread's registers tell how
 * far the stack goes; heap_roots.h looks at these registers.
 *
 * These functions give the references of an execution context only if the caller has set `contexts` in struct
 * object_refs.
 *
 * A thread keeps the stack of its fiber alive. If the program has a Fiber object for this fiber, the thread refers to
 * the Fiber object, and the Fiber object keeps the stack.
 *
 * Based on Ruby's sources, 2.5.0 to 4.0.5: vm.c (thread_mark, rb_execution_context_mark), cont.c (rb_fiber_mark_self,
 * fiber_mark, cont_mark), gc.c (rb_gc_mark_machine_stack, since 3.4 rb_gc_mark_machine_context).
 */
#ifndef RBDUMP_THREAD_REFS_H
#define RBDUMP_THREAD_REFS_H

#include "ruby/refs_walk.h"

/* Whether the layout has the members that the functions below need. Up to 2.4, execution contexts are other structs. */
bool thread_refs_are_known(const struct layout *layout);

/*
 * Gives the references of a rb_thread_t. Always returns false: the thread may have more references, or fewer. For example,
 * words of a native stack can be left over from earlier calls.
 */
bool thread_refs(struct refs_walk *walk, uint64_t thread);

/* The same, of a rb_fiber_t. */
bool fiber_refs(struct refs_walk *walk, uint64_t fiber);

#endif
