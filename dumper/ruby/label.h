/*
 * Labels and names of frames. Based on Ruby's sources, 1.9.3 to 4.0.5 and head: vm_backtrace.c (location_label,
 * calculate_iseq_label, rb_gen_method_name, location_cfunc_p), iseq.c.
 */
#ifndef RBDUMP_LABEL_H
#define RBDUMP_LABEL_H

#include "ruby/code.h"
#include "ruby/value.h"

/* Data from an rb_callable_method_entry_t. */
struct method {
	uint64_t owner; /* the class or module in which the method was defined */
	/*
	 * The name in the method's definition. Up to Ruby 2.2, `undef` can remove a method while the method runs. In
	 * this case, `original_id` is the name by which the method was called.
	 */
	uint64_t original_id;
	bool acts_as_cfunc; /* the method is written in C, or is written in Ruby but shown like a C function */
};

/* Reads a method entry. If the method entry cannot be read, returns false and sets access->failed. */
bool method_read(struct access *access, uint64_t method, struct method *ret);

/*
 * Appends the label that Ruby itself prints for a frame of `code`. `method` is NULL if the frame has no method entry.
 */
void label_of_code(const struct ruby *ruby, struct access *access, const struct code *code, const struct method *method,
		   struct text *label);
/* Appends the label that Ruby itself prints for the frame of a C function. */
void label_of_method(const struct ruby *ruby, struct access *access, const struct method *method, struct text *label);

/*
 * The next two functions append the name of a frame. The name is the label with a prefix for the class (see
 * class_add_prefix()). A name has this prefix in every Ruby and for every class. A label has a prefix only in some
 * cases (see class_add_ruby_prefix()).
 */
void name_of_code(const struct ruby *ruby, struct access *access, const struct code *code, const struct method *method,
		  struct text *name);
void name_of_method(const struct ruby *ruby, struct access *access, const struct method *method, struct text *name);

/*
 * Whether this Ruby shows frames of `code` like frames of C functions (vm_backtrace.c: BUILTIN_ATTR_C_TRACE in 3.4;
 * is_internal_location from 4.0 on).
 */
bool code_acts_as_cfunc(struct access *access, const struct code *code);

/*
 * Whether this Ruby omits the frames of C functions that `code` has called (vm_backtrace.c, 4.0+). Frames that are
 * shown like frames of C functions (see code_acts_as_cfunc()) are omitted, too. Ruby omits all frames between the frame
 * of `code` and the nearest younger frame that has a path and a line of its own. This younger frame is shown. If there
 * is no such frame, all younger frames are omitted.
 */
bool code_hides_cfuncs(struct access *access, const struct code *code);

/* Whether this Ruby omits the caller of a frame of `code` (vm_backtrace.c, 3.4+: is_rescue_or_ensure_frame). */
bool code_hides_caller(const struct layout *layout, const struct code *code);

#endif
