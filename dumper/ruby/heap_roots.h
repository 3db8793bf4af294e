/*
 * Finds the roots of Ruby's heap: the words outside the heap that keep objects alive. Also finds out what each of these
 * words is. Ruby's collector keeps the objects that can be reached from the roots.
 *
 * Some roots are exact: they are references in Ruby's own structs. Ruby's collector itself looks at stacks
 * conservatively: if a word equals the address of an object, the word keeps this object alive. rbdump looks at more memory
 * in this way: at all variables of C code, and at all words of some structs of Ruby. Of the variables of C code, Ruby's
 * collector looks only at those that the code has registered. So rbdump can find a conservative root that is not a root
 * for Ruby's collector, but it misses few roots. rbdump does not find the following roots:
 *   - references that only a just-in-time compiler keeps (YJIT, RJIT, MJIT, ZJIT)
 *   - the registers of a running thread, except registers that a call or a switch of fibers has saved in memory
 *   - messages that a ractor has not received yet
 *   - blocks of at_exit, because the list of these blocks is in a struct that no layout contains
 *   - blocks of trace_var
 *   - hooks for one method only; up to 2.5, also hooks for one thread only
 *   - references that C code marks in a function that is not the mark function of an object
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: gc.c (gc_mark_roots; since 3.4: rb_gc_mark_roots), vm.c (rb_vm_mark,
 * thread_mark, rb_execution_context_mark), ractor.c (ractor_mark), cont.c (fiber_mark), variable.c
 * (rb_gc_mark_global_tbl), vm_trace.c (rb_hook_list_mark).
 */
#ifndef RBDUMP_HEAP_ROOTS_H
#define RBDUMP_HEAP_ROOTS_H

#include "ruby/heap_root.h"

/*
 * Reads the threads, the fibers, and their frames.
 *   ruby             the caller keeps it, and ruby->memory, until heap_roots_clear()
 *   module           the file that contains Ruby. The target must not be closed before heap_roots_clear()
 *   files            the variables of C code, as read by data_files_read(). That function does not read the target's
 *                    memory, so it can be called before the target is stopped. The caller keeps the variables until
 *                    heap_roots_clear()
 *   source, context  the function that reads the target's pages, and its first argument. Large ranges are read with
 *                    this function
 *   deadline_ns      no large range is read after this time (CLOCK_MONOTONIC); 0: no limit
 * Returns false if there is not enough memory. The caller always calls heap_roots_clear().
 */
bool heap_roots_read(const struct ruby *ruby, const struct module *module, const struct data_files *files,
		     memory_source *source, void *context, uint64_t deadline_ns, struct heap_roots *ret);
void heap_roots_clear(struct heap_roots *roots);

/*
 * Calls `visit` for each root whose target is an object, according to `is_object`. Returns false if roots may be
 * missing, because memory could not be read, or because a limit was reached.
 */
bool heap_roots_each(struct heap_roots *roots, heap_root_is_object *is_object, heap_root_visit *visit, void *context);

#endif
