/*
 * Code: what an rb_iseq_t says of itself, and lines. Facts: vm_core.h (rb_iseq_constant_body), iseq.c
 * (succ_index_lookup, get_insn_info_succinct, get_line_info), vm_backtrace.c (calc_lineno), 2.0.0 to 4.0.5; vm.c
 * (rb_vm_get_sourceline), 1.9.3.
 */
#ifndef RBDUMP_CODE_H
#define RBDUMP_CODE_H

#include "decode/value.h"
#include "vm/ruby.h"

struct code {
	uint64_t iseq; /* address of the rb_iseq_t, after compaction */
	uint64_t body;
	uint64_t type;		/* ISEQ_TYPE_ */
	uint64_t encoded;	/* address of the first word of code */
	uint64_t size;		/* in words */
	uint64_t parent;	/* rb_iseq_t, or 0; it may have been moved */
	uint64_t local;		/* rb_iseq_t, after compaction */
	uint64_t klass;		/* that it was defined in, if it is a method's, until 2.2; else 0 */
	uint64_t builtin_attrs; /* 0 if this Ruby has none */
	int64_t first_line;
	bool compiled; /* a JIT has made machine code of it, which the interpreter calls */
	struct bytes label;
	struct bytes path;
	struct bytes absolute_path; /* none for code from eval */
};

/* Whether an rb_iseq_t is there: an imemo, or until 2.2 what belongs to a T_DATA. */
bool code_is_at(const struct access *access, uint64_t iseq);

/* Where most of an iseq's facts are (rb_iseq_constant_body): until 2.2, in itself. */
uint64_t code_body(struct access *access, uint64_t iseq);

/* Reads the code at `iseq`. Fails the read if it is not an iseq, or not a whole one. */
bool code_read(struct access *access, uint64_t iseq, struct code *ret);

/* Whether the code is of Ruby's own core: its path is that of no file, <internal:kernel> and the like. */
bool code_is_internal(struct access *access, const struct code *code);

/* Whether `pc` lies in the code: what a frame of the interpreter has, and one of a JIT may not. */
bool code_has_pc(const struct code *code, uint64_t pc);

/*
 * Whether the code's index from positions to lines holds: the last position must lead to the last entry. (vm_core.h,
 * iseq.c: as many entries as the index counts.)
 */
bool code_lines_hold(struct access *access, const struct code *code);

/*
 * Reads all that code_line() would, for any pc, and does nothing with it: who notes what is read (memory_record()) has
 * it then. Nothing of code that has too much of it.
 */
void code_read_lines(const struct access *access, const struct code *code);

/* Line that `pc`, which code_has_pc(), is at; 0 if the code has no lines. */
int64_t code_line(struct access *access, const struct code *code, uint64_t pc);

#endif
