/*
 * Reads code (the content of an rb_iseq_t), and finds line numbers. Based on Ruby's sources: 2.0.0 to 4.0.5, vm_core.h
 * (rb_iseq_constant_body), iseq.c (succ_index_lookup, get_insn_info_succinct, get_line_info), vm_backtrace.c
 * (calc_lineno); 1.9.3, vm.c (rb_vm_get_sourceline).
 */
#ifndef RBDUMP_CODE_H
#define RBDUMP_CODE_H

#include "ruby/ruby.h"
#include "ruby/value.h"

struct code {
	uint64_t iseq;	  /* address of the rb_iseq_t; the new address if compaction has moved it */
	uint64_t body;	  /* the address that code_body() returns */
	uint64_t type;	  /* ISEQ_TYPE_ */
	uint64_t encoded; /* address of the first instruction */
	uint64_t size;	  /* in words */
	/*
	 * The rb_iseq_t of the enclosing code; 0 if there is no enclosing code. If compaction has moved the rb_iseq_t,
	 * this can be the old address.
	 */
	uint64_t parent;
	/* address of local_iseq, the outermost iseq in the same method; the new address if compaction has moved it */
	uint64_t local;
	uint64_t klass;		/* up to 2.2: the class in which the method was defined; since 2.3: 0 */
	uint64_t builtin_attrs; /* BUILTIN_ATTR_ bits; 0 if this Ruby has no builtin_attrs */
	int64_t first_line;
	bool compiled; /* a JIT has compiled the code, and the interpreter calls the machine code */
	struct bytes label;
	struct bytes path;
	/*
	 * `absolute_path.address` is 0 if the code has no absolute path. In Ruby 3.1 and later, code from eval has no
	 * absolute path.
	 */
	struct bytes absolute_path;
};

/*
 * Whether there is an rb_iseq_t at an address. Since Ruby 2.3, an rb_iseq_t is an imemo. Up to Ruby 2.2, an rb_iseq_t
 * is the C struct of a T_DATA object.
 */
bool code_is_at(const struct access *access, uint64_t iseq);

/*
 * The address of the struct that contains most of an iseq's data (rb_iseq_constant_body). Up to Ruby 2.2 this struct is
 * the iseq itself.
 */
uint64_t code_body(struct access *access, uint64_t iseq);

/*
 * Reads the code at `iseq`. Returns false and sets access->failed if there is no iseq at that address, or if the iseq
 * is incomplete.
 */
bool code_read(struct access *access, uint64_t iseq, struct code *ret);

/*
 * Whether the code belongs to Ruby's own core. The path of such code begins with "<internal:" and does not name a file.
 */
bool code_is_internal(struct access *access, const struct code *code);

/*
 * Whether `pc` points into the code. For the pc of a frame that the interpreter runs, the result is always true. For
 * the pc of a frame that runs JIT-compiled code, the result can be false.
 */
bool code_has_pc(const struct code *code, uint64_t pc);

/*
 * Whether the code's line index is consistent. For each position in the code, the index says how many line entries
 * begin at or before this position. So for the last position, the index must contain the total number of line entries
 * (vm_core.h, iseq.c).
 */
bool code_lines_hold(struct access *access, const struct code *code);

/*
 * Reads all bytes that code_line() might need for any pc of the code. These reads add the bytes to the current
 * footprint (see memory_record()). Does nothing if the code or its table of lines is too long.
 */
void code_read_lines(const struct access *access, const struct code *code);

/* The line number of `pc`; 0 if the code has no lines. Call this function only if code_has_pc() returns true. */
int64_t code_line(struct access *access, const struct code *code, uint64_t pc);

#endif
