#include "ruby/jit_frame.h"

#include "ruby/value.h"

/* zjit.h, head (v4.0.5 has none): jit_return in the frame of a C function that ZJIT's code has called. */
#define ZJIT_JIT_RETURN_C_FRAME UINT64_C(1)

/* The word below where jit_return points, on the native stack, points to ZJIT's frame. */
static bool read_zjit_frame(const struct access *from, uint64_t jit_return, struct jit_frame *ret)
{
	struct access access = *from;
	uint64_t frame = access_word(&access, jit_return - 8);
	enum memory_kind kind;
	bool is_code;

	if (!value_is_object(frame))
		return false;
	/* ZJIT's frame is made when code is compiled (zjit/src/codegen.rs, JITFrame). */
	kind = memory_reads(access.memory, MEMORY_LASTS);
	ret->pc = access_member(&access, frame, F_zjit_frame_pc);
	ret->iseq = access_member(&access, frame, F_zjit_frame_iseq);
	is_code = value_is_imemo(&access, value_object(&access, ret->iseq), E_imemo_iseq);
	memory_reads(access.memory, kind);
	return is_code;
}

struct jit_frame jit_frame_read(const struct ruby *ruby, struct access *access, uint64_t cfp)
{
	const struct layout *layout = ruby->layout;
	struct jit_frame frame = {
	    .pc = access_member(access, cfp, F_cfp_pc),
	    .iseq = access_member(access, cfp, F_cfp_iseq),
	};
	struct jit_frame of_zjit = {.jit = true};
	uint64_t jit_return;

	if (!layout_has(layout, F_cfp_jit_return))
		return frame;
	jit_return = access_member(access, cfp, F_cfp_jit_return);
	frame.jit = jit_return != 0;
	if (!frame.jit || access->failed || ruby->zjit == ZJIT_OFF || !layout_has(layout, F_zjit_frame_pc) ||
	    !layout_has(layout, F_zjit_frame_iseq))
		return frame;
	if (jit_return == ZJIT_JIT_RETURN_C_FRAME)
		return (struct jit_frame){.jit = true};
	if (value_is_object(jit_return) && read_zjit_frame(access, jit_return, &of_zjit))
		return of_zjit;
	/* For YJIT, jit_return is an address of code, and the bytes before it are no pointer to a frame. */
	if (ruby->zjit == ZJIT_ON)
		access_fail(access, jit_return);
	return frame;
}
