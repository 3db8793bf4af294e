/*
 * One Ruby in one target: its memory, its layout and its roots (see roots.h). The functions of ruby/ work on a
 * `struct ruby`. These functions read the target only through the `memory` of the struct. The only exceptions are
 * functions that take a memory_source.
 */
#ifndef RBDUMP_RUBY_H
#define RBDUMP_RUBY_H

#include "ruby/access.h"

struct checked_code;
struct known_stack;

/*
 * Whether the just-in-time compiler ZJIT is on. ZJIT_UNKNOWN if rb_zjit_entry cannot be read, for example because its
 * address is not known.
 */
enum zjit { ZJIT_UNKNOWN, ZJIT_OFF, ZJIT_ON };

struct ruby {
	struct memory *memory;
	const struct layout *layout;

	uint64_t vm;		/* address of the rb_vm_struct to which ruby_current_vm_ptr points */
	uint64_t symbols;	/* address of ruby_global_symbols, an rb_symbols_t; 0 if not known */
	uint64_t operators;	/* address of op_tbl[], which is needed up to 2.1; 0 if not known */
	uint64_t object_class;	/* address of the variable rb_cObject; 0 if not known */
	uint64_t shape_tree;	/* address of rb_shape_tree_ptr (since 4.0: rb_shape_tree); 0 if not known */
	uint64_t generic_ivars; /* address of the variable generic_iv_tbl_; 0 if not known */
	enum zjit zjit;
	/*
	 * The layout is for another release. The offsets of the garbage collector's counters and of the serial numbers
	 * of methods might be wrong, and the self-test cannot detect this. So rbdump does not use these numbers to find
	 * out whether data that it has kept is still right.
	 */
	bool borrowed;
	/* The garbage collector is not Ruby's own (RUBY_GC_LIBRARY, since 3.4), so its state is not known. */
	bool other_gc;
	/*
	 * Whether to skip the check that a frame's code belongs to the frame's method entry. The check is skipped if it
	 * was made before, or if the stack is from a source that omits checks. Only experiments use such sources
	 * (`unchecked` in sampling/source.h).
	 */
	bool unchecked;
	const struct known_stack *known;    /* known frames (frame.h), which are not read again; can be NULL */
	const struct checked_code *checked; /* pairs of code and method entry that are not checked again; can be NULL */
};

static inline struct access ruby_access(const struct ruby *ruby)
{
	return access_begin(ruby->memory, ruby->layout);
}

#endif
