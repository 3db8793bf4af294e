/*
 * What a frame is called. Facts: vm_backtrace.c (location_label, calculate_iseq_label, rb_gen_method_name,
 * location_cfunc_p), iseq.c, 1.9.3 to 4.0.5 and head.
 */
#ifndef RBDUMP_LABEL_H
#define RBDUMP_LABEL_H

#include "decode/code.h"
#include "decode/text.h"

/* What an rb_callable_method_entry_t says. */
struct method {
	uint64_t owner; /* class or module that it was defined in */
	uint64_t
	    original_id;    /* the name that it was defined with; the one it is called by, if it is defined no longer */
	bool acts_as_cfunc; /* written in C, or in Ruby but shown as if it were */
};

/* Reads a method entry. Fails the read if that cannot be. */
bool method_read(struct access *access, uint64_t method, struct method *ret);

/* The label that Ruby itself prints for a frame of `code`, `method` being its method entry or NULL. */
void label_of_code(const struct ruby *ruby, struct access *access, const struct code *code, const struct method *method,
		   struct text *label);
/* The label that Ruby itself prints for the frame of a C function. */
void label_of_method(const struct ruby *ruby, struct access *access, const struct method *method, struct text *label);

/* The same two, qualified by class in every Ruby and for every class: see class_add_prefix(). */
void name_of_code(const struct ruby *ruby, struct access *access, const struct code *code, const struct method *method,
		  struct text *name);
void name_of_method(const struct ruby *ruby, struct access *access, const struct method *method, struct text *name);

/*
 * Whether this Ruby shows frames of that code as if it were a C function (vm_backtrace.c: BUILTIN_ATTR_C_TRACE in 3.4;
 * is_internal_location from 4.0 on).
 */
bool code_acts_as_cfunc(struct access *access, const struct code *code);

/*
 * Whether this Ruby also leaves out the C functions, and what acts as one, that such code has called, up to the next
 * frame that has a place (vm_backtrace.c, 4.0+).
 */
bool code_hides_cfuncs(struct access *access, const struct code *code);

/* Whether this Ruby leaves out the frame that called this one (vm_backtrace.c, 3.4+: is_rescue_or_ensure_frame). */
bool code_hides_caller(const struct layout *layout, const struct code *code);

#endif
