/*
 * The arguments of a method that is written in C. Its frame does not have them: they are on the VM stack, where the
 * caller has pushed them. Based on Ruby's sources, 2.4.0 to 4.0.5 and head: vm_insnhelper.c (vm_call_cfunc_with_frame,
 * vm_push_frame), vm_core.h (VM_ENV_DATA_SIZE).
 */
#ifndef RBDUMP_ARGUMENTS_H
#define RBDUMP_ARGUMENTS_H

#include "ruby/ruby.h"

/*
 * Reads the arguments of the C function whose control frame is at `cfp`. Keyword arguments are in a Hash at the end.
 * Returns false if they cannot be found: if the layout does not tell where they are, or if C code has called the method.
 *   values  receives the first `max` arguments (VALUEs)
 *   count   receives how many there are in `values`
 */
bool arguments_read(const struct ruby *ruby, uint64_t cfp, uint64_t *values, size_t max, size_t *count);

/* An argument that is an Integer of at most 62 bits. Returns false if it is not. */
bool arguments_integer(uint64_t value, int64_t *ret);

/* An argument that is an Integer as above, or a Float that is not an object. Returns false if it is neither. */
bool arguments_number(uint64_t value, double *ret);

#endif
