/*
 * The arguments of a method of Ruby itself. If the method is written in C, its frame does not have them: they are on the VM
 * stack, where the caller has pushed them. If the method is written in Ruby (thread_sync.rb), they are local variables. Based
 * on Ruby's sources, 2.0.0 to 4.0.5 and head: vm_insnhelper.c (vm_call_cfunc_with_frame, vm_push_frame), vm_core.h
 * (VM_ENV_DATA_SIZE).
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

/*
 * Reads the parameter `name` of a method of Ruby itself. The method runs in the control frame at `cfp`. Returns false if the
 * code is not Ruby's own, if it has no such parameter, or if the parameter cannot be read. If the frame is the innermost and
 * runs code of a JIT, the value can be an old one (locals.h).
 */
bool arguments_named(const struct ruby *ruby, uint64_t cfp, const char *name, uint64_t *value);

/*
 * Reads a parameter of a method that is written in Ruby, by its position: 0 is the first. Returns false if there is none, or
 * if it cannot be read.
 */
bool arguments_parameter(const struct ruby *ruby, uint64_t cfp, size_t index, uint64_t *value);

/* An argument that is an Integer of at most 62 bits. Returns false if it is not. */
bool arguments_integer(uint64_t value, int64_t *ret);

/* An argument that is an Integer as above, or a Float in the VALUE itself (flonum). Returns false if it is neither. */
bool arguments_number(uint64_t value, double *ret);

#endif
