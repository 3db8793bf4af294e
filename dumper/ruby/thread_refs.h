/*
 * The references of a Thread and of a Fiber: the members of their structs and of their execution contexts, the members
 * of their control frames, and the words of their VM stacks. The words of native stacks, the saved registers, and all
 * other words of the structs count as conservative references. Ruby's collector, too, looks at native stacks and saved
 * registers conservatively. While a thread runs on a native stack, only the thread's stack pointer shows where the used
 * part of the stack ends. The functions of heap_roots.h use this stack pointer, but the functions below do not.
 *
 * The functions below give the references of an execution context only if the caller has set `contexts` in struct
 * object_refs.
 *
 * A thread keeps alive all objects that the stack of its fiber refers to. If the program has a Fiber object for this
 * fiber, the thread refers to the Fiber object, and the Fiber object keeps these objects alive.
 *
 * Based on Ruby's sources, 2.5.0 to 4.0.5: vm.c (thread_mark, rb_execution_context_mark), cont.c (rb_fiber_mark_self,
 * fiber_mark, cont_mark), gc.c (rb_gc_mark_machine_stack; since 3.4: rb_gc_mark_machine_context).
 */
#ifndef RBDUMP_THREAD_REFS_H
#define RBDUMP_THREAD_REFS_H

#include "ruby/refs_walk.h"

/*
 * Whether the layout has the members that the functions below need. False up to Ruby 2.4, which has no
 * rb_execution_context_t.
 */
bool thread_refs_are_known(const struct layout *layout);

/*
 * Gives the references of an rb_thread_t. Always returns false, because the function may miss some references of the
 * thread, and may give some wrong references. For example, words of a native stack can be left over from earlier calls.
 */
bool thread_refs(struct refs_walk *walk, uint64_t thread);

/* Like thread_refs(), but for an rb_fiber_t. */
bool fiber_refs(struct refs_walk *walk, uint64_t fiber);

#endif
