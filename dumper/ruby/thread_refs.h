/*
 * The references of a Thread and of a Fiber: the members of their structs and of their execution contexts, the members
 * of their control frames, and the words of their VM stacks. The words of native stacks, the saved registers, and all
 * other words of the structs are given as conservative references. Ruby's collector looks at native stacks and saved
 * registers in the same way. While a thread runs on a native stack, only the thread's stack pointer shows where the
 * used part of the stack ends. The functions of heap_roots.h use the stack pointer.
 *
 * These functions give the references of an execution context only if the caller has set `contexts` in struct
 * object_refs.
 *
 * A thread keeps the stack of its fiber alive. If the program has a Fiber object for this fiber, the thread refers to
 * the Fiber object, and the Fiber object keeps the stack alive.
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
 * Gives the references of a rb_thread_t. Always returns false, because the thread may have other references, and some
 * of the given references may be wrong. For example, words of a native stack can be left over from earlier calls.
 */
bool thread_refs(struct refs_walk *walk, uint64_t thread);

/* Like thread_refs(), but for a rb_fiber_t. */
bool fiber_refs(struct refs_walk *walk, uint64_t fiber);

#endif
