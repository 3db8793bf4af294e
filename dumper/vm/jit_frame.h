/*
 * Where a control frame's pc and iseq are. As a rule, in the control frame itself. But while ZJIT's code runs a method
 * they are in a struct of ZJIT's own (zjit.h, zjit_jit_frame_t, head): the control frame then has what an older frame
 * left there.
 *
 * Facts: zjit.h (CFP_ZJIT_FRAME, ZJIT_JIT_RETURN_C_FRAME), vm_core.h (rb_control_frame_t), zjit/src/codegen.rs
 * (gen_entry_point, cfp_jit_return_for_depth), head. Of YJIT and RJIT, jit_return is where the code that has made the
 * frame goes on (yjit/src/codegen.rs, gen_send_iseq, 3.2.11); vm_push_frame() of vm_insnhelper.c sets it to NULL.
 */
#ifndef RBDUMP_JIT_FRAME_H
#define RBDUMP_JIT_FRAME_H

#include "vm/ruby.h"

struct jit_frame {
	uint64_t pc;
	uint64_t iseq; /* 0 for a C function */
	bool jit;      /* a JIT's code has made the frame, or runs it */
};

/* Reads what the control frame at `cfp` runs, and where it is. Fails the read if ZJIT is on and has no such frame. */
struct jit_frame jit_frame_read(const struct ruby *ruby, struct access *access, uint64_t cfp);

#endif
