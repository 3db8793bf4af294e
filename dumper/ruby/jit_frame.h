/*
 * Finds a control frame's pc and iseq. Usually the control frame itself contains the pc and the iseq. But while a
 * method runs in code that ZJIT has compiled, a struct of ZJIT contains the pc and the iseq (zjit.h, zjit_jit_frame_t,
 * head). In this case, the control frame still contains the pc and the iseq of an earlier frame.
 *
 * Based on Ruby's sources, head: zjit.h (CFP_ZJIT_FRAME, ZJIT_JIT_RETURN_C_FRAME), vm_core.h (rb_control_frame_t),
 * zjit/src/codegen.rs (gen_entry_point, cfp_jit_return_for_depth). If the code of YJIT or RJIT has pushed a frame, the
 * frame's jit_return is the address at which this code continues when the frame returns (yjit/src/codegen.rs,
 * gen_send_iseq, 3.2.11). If the interpreter has pushed a frame, vm_push_frame() of vm_insnhelper.c has set the frame's
 * jit_return to NULL.
 */
#ifndef RBDUMP_JIT_FRAME_H
#define RBDUMP_JIT_FRAME_H

#include "ruby/ruby.h"

struct jit_frame {
	uint64_t pc;
	uint64_t iseq; /* 0 for a C function */
	bool jit;      /* JIT-compiled code has pushed the frame, or the frame runs such code */
};

/*
 * Reads the iseq and the pc of the control frame at `cfp`. Sets access->failed if the control frame cannot be read, or
 * if ZJIT is on and ZJIT's struct cannot be read.
 */
struct jit_frame jit_frame_read(const struct ruby *ruby, struct access *access, uint64_t cfp);

#endif
