/*
 * Which local variables a frame has, and which words of memory contain the values of these variables. Based on Ruby's
 * sources, 2.4.0 to 4.0.5 and head: vm.c (vm_collect_local_variables_in_heap, vm_make_env_each), vm_core.h
 * (VM_ENV_DATA_INDEX_*), insns.def (getlocal), vm_insnhelper.c (vm_push_frame, vm_getblockparam), proc.c
 * (bind_local_variables, rb_binding_local_variables).
 *
 * The variables are those that `binding.local_variables` returns in the frame: the frame's own variables, and the
 * variables of the code that encloses the frame's code. A variable of the enclosing code is omitted if an inner variable
 * has the same name. The variables are in environments. An environment can be on the stack or, if a Proc or a Binding uses
 * it, on the heap. Variables that Ruby itself uses have no names, and are omitted. Arguments to which the program gives no
 * name are included: "*", "**" and "&"; since 3.4, also "...".
 *
 * When a frame is pushed, its variables are nil, unless they are arguments. So a variable that has not been assigned yet
 * is nil, as in Ruby.
 *
 * What a JIT keeps in registers (with each JIT, `self` is in the control frame as soon as the frame exists):
 *   MJIT, 2.6 to 3.2   Local variables are written to the environment (vm_env_write() in the C code that MJIT makes:
 *                      tool/ruby_vm/views/_mjit_compile_insn.erb, v2_7_8). The C compiler may move a write, but not
 *                      past the call of a function that can see the environment.
 *   YJIT, 3.1 to 3.3   setlocal writes to the environment (yjit_codegen.c, gen_setlocal_wc0, v3_1_4; yjit/src/codegen.rs,
 *                      gen_setlocal_generic, v3_3_8). Arguments are temporary values on the caller's stack (stack temps).
 *                      Since 3.3, these values can be in registers, but they are written to the stack before a call
 *                      (gen_send_iseq: asm.spill_temps()).
 *   YJIT, 3.4 and 4.0  Local variables can be in registers, and a callee receives its arguments in registers
 *                      (gen_send_iseq: map_temp_regs_to_args()). Before each call of Ruby code, and before each call of a
 *                      C function that can run Ruby code or raise an exception, the registers of the caller are written
 *                      to the stack (yjit/src/backend/ir.rs, spill_regs_except, v3_4_5).
 *   RJIT, 3.3 and 3.4  setlocal writes to the environment (lib/ruby_vm/rjit/insn_compiler.rb, jit_setlocal_generic).
 *   ZJIT, 4.0, head    The compiler can keep local variables in registers. Before each call, all local variables are
 *                      written to the stack (zjit/src/codegen.rs, gen_spill_locals, v4.0.5).
 * So a variable can be in a register only if it is one of the innermost frame's own variables, and if this frame runs code of a
 * JIT.
 */
#ifndef RBDUMP_LOCALS_H
#define RBDUMP_LOCALS_H

#include "ruby/frame.h"

/* The maximum number of variables of one frame, including those of the enclosing code. */
#define LOCALS_MAX 512u

struct local {
	char *name;	  /* valid UTF-8, as in struct text (base/text.h) */
	size_t depth;	  /* 0: in the frame's own environment; 1: in the next enclosing environment; and so on */
	uint64_t ep;	  /* of the variable's environment, which can be on the stack or on the heap */
	uint64_t value;	  /* the VALUE */
	bool readable;	  /* `value` is known */
	bool is_value;	  /* false: `value` is not a VALUE, but data for Ruby itself (the parameter `...`, since 3.4) */
	bool in_register; /* a JIT may keep the variable in a register */
	bool maybe_block; /* see VALUE_OR_BLOCK of trace/details.h */
};

struct locals {
	struct local *of;
	size_t count, capacity;
	uint64_t ep;  /* of the frame's own environment; 0 if it could not be read */
	bool known;   /* false: up to 2.3 (variables are stored in another way), or if the layout lacks a member */
	bool broken;  /* an environment could not be read, or contradicts the code: variables may be missing */
	bool unnamed; /* the name of a variable could not be read, so the variable is missing */
	bool cut;     /* variables are missing: there are more than LOCALS_MAX, or the time limit was reached */
};

/*
 * Reads the local variables of a frame of Ruby code. Words of environments are read as data that changes, and code and names
 * as data that lasts (memory/memory.h).
 *   in_registers  true: the frame is the innermost frame, and may run code of a JIT
 *   ret           the caller frees it with locals_clear(), even after a failure
 * Returns false if there is not enough memory.
 */
bool locals_read(const struct ruby *ruby, const struct frame *frame, bool in_registers, struct locals *ret);
void locals_clear(struct locals *locals);

/* The ep of a frame's own environment; 0 if it cannot be read. */
uint64_t locals_ep(const struct ruby *ruby, const struct frame *frame);

#endif
