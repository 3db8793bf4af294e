/*
 * Relates Ruby's machine code to Ruby's objects: finds the C functions that implement methods, and the function that
 * interprets code. Based on Ruby's sources, 1.9.3 to 4.0.5: method.h (rb_method_cfunc_t), vm_core.h, vm_insnhelper.c,
 * vm_eval.c.
 */
#ifndef RBDUMP_MACHINE_H
#define RBDUMP_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "ruby/access.h"

/* The C function that implements a method (rb_callable_method_entry_t); 0 if the method is not implemented in C. */
uint64_t machine_implementation(struct access *access, uint64_t method);

/*
 * The address of the machine code that executes the first instruction of `iseq` (rb_iseq_t). This machine code is inside
 * the function that interprets code, because Ruby's instructions are addresses in this function (OPT_DIRECT_THREADED_CODE).
 */
uint64_t machine_first_instruction(struct access *access, uint64_t iseq);

/* Whether `name` is the name of one of Ruby's functions that call methods written in C. */
bool machine_calls_c(const char *name);

/* Whether `name` is the name of Ruby's function that interprets code. */
bool machine_interprets(const char *name);

/* Whether `name` is the name of vm_exec() (vm.c). This function of Ruby calls the function that interprets code. */
bool machine_executes(const char *name);

#endif
