/*
 * The references of code (an rb_iseq_t that is a T_IMEMO, since Ruby 2.3).
 *
 * Based on Ruby's sources, 2.3.0 to 4.0.5 and head: iseq.c (rb_iseq_mark_and_move; up to 3.2: rb_iseq_mark,
 * rb_iseq_each_value, iseq_extract_values), iseq.h, vm_core.h (rb_iseq_constant_body).
 *
 * The objects in the instructions of code are found in one of three ways:
 *   up to 2.5   An Array contains all of them, and the code refers only to this Array.
 *   2.6 to 3.1  Ruby walks the instructions, and knows the types of their operands. A layout does not contain these
 *               types. So if a word of the code can be an object, rbdump gives this word as REF_CONSERVATIVE. The words
 *               that are not objects cannot equal the address of an object: they are addresses of machine code,
 *               addresses of memory from malloc(), or small numbers. References in inline caches are exact. The
 *               instruction `once` runs its code only one time, and keeps the value in its cache. rbdump recognizes
 *               this cache, because `once` is the only instruction whose operand before the cache is code.
 *   since 3.2   For each word, a bit shows whether the word is an object. The inline caches are sorted by their kind.
 *
 * Some references are not known if a just-in-time compiler has compiled the code, or while Ruby is still compiling the
 * code.
 */
#ifndef RBDUMP_ISEQ_REFS_H
#define RBDUMP_ISEQ_REFS_H

#include "ruby/refs_walk.h"

/* Gives the references of code. Returns whether all references are known. */
bool iseq_refs(struct refs_walk *walk);

/*
 * Gives the objects of the TracePoints in a rb_hook_list_struct (vm_trace.c, rb_hook_list_mark). `list` can be 0.
 * Returns false if there are no steps left.
 */
bool hook_list_refs(struct refs_walk *walk, uint64_t list);

#endif
