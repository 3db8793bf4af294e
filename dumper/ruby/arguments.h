/*
 * Reads the arguments of a method of Ruby itself, or of a hook of a fiber scheduler. If the method is written in C, its
 * frame does not contain the arguments. Instead, the arguments are on the VM stack, where the caller has pushed them. If
 * the method is written in Ruby (for example in thread_sync.rb), the arguments are local variables of the frame. Based
 * on Ruby's sources, 2.0.0 to 4.0.5 and head: vm_insnhelper.c (vm_call_cfunc_with_frame, vm_push_frame), vm_core.h
 * (VM_ENV_DATA_SIZE).
 */
#ifndef RBDUMP_ARGUMENTS_H
#define RBDUMP_ARGUMENTS_H

#include "ruby/ruby.h"

/*
 * Reads the arguments of the C function whose control frame is at `cfp`. Keyword arguments are in a Hash, which is the
 * last argument. Returns false if the layout lacks a member, or if the arguments are not where the caller's stack
 * pointer points. They are not at this place if C code has called the method, or if a JIT has not updated the stack
 * pointer in memory.
 *   values  receives the first `max` arguments (VALUEs)
 *   count   receives the number of arguments in `values`
 */
bool arguments_read(const struct ruby *ruby, uint64_t cfp, uint64_t *values, size_t max, size_t *count);

/*
 * Reads the parameter `name` of a method of Ruby itself. The control frame of the method is at `cfp`. Returns false if
 * the code is not Ruby's own, if the method has no such parameter, or if the parameter cannot be read. If the frame is
 * the innermost frame and runs JIT-compiled code, the value can be out of date (locals.h).
 */
bool arguments_named(const struct ruby *ruby, uint64_t cfp, const char *name, uint64_t *value);

/*
 * Reads a parameter of a method that is written in Ruby. Returns false if the method has no such parameter, or if the parameter
 * cannot be read.
 *   index  the position of the parameter; 0 is the first
 */
bool arguments_parameter(const struct ruby *ruby, uint64_t cfp, size_t index, uint64_t *value);

/*
 * Converts an argument to an int64_t, if the argument is an Integer of at most 62 bits. Returns false for any other
 * argument.
 */
bool arguments_integer(uint64_t value, int64_t *ret);

/*
 * Converts an argument to a double, if the argument is an Integer of at most 62 bits, or a Float that is stored in the
 * VALUE itself (flonum). Returns false for any other argument.
 */
bool arguments_number(uint64_t value, double *ret);

#endif
