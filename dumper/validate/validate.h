/*
 * Whether a stack, as it was copied, can be what Ruby had: pure checks over what was read, no I/O.
 *
 * A hard check that fails means that the bytes contradict themselves: the stack was changing, or the layout is wrong.
 * Facts: vm_core.h (VM_FRAME_MAGIC_, VM_ENV_FLAG_, vm_assert_env in vm_insnhelper.c), 1.9.3 to 4.0.5 and head.
 */
#ifndef RBDUMP_VALIDATE_H
#define RBDUMP_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "layout.h"

enum verdict {
	VERDICT_COMPLETE,
	VERDICT_TRUNCATED,  /* what is shown is right, but not all */
	VERDICT_TORN,	    /* it was changing while it was copied */
	VERDICT_UNREADABLE, /* there is nothing to show */
};

enum reason {
	REASON_NONE,
	/* of a stack */
	REASON_EC_UNREADABLE,
	REASON_EC_FOREIGN,
	REASON_STACK_SIZE,
	REASON_CFP_OUTSIDE,
	REASON_CFP_MISALIGNED,
	REASON_TOO_DEEP,
	REASON_MOVED,
	REASON_WINDOW,
	REASON_NOT_STOPPED,
	REASON_REFUSED,
	REASON_NOT_IDENTIFIED,
	REASON_OUT_OF_TIME,
	REASON_COMPACTED,
	REASON_COLLECTED,
	/* of a frame */
	REASON_FRAME_UNREADABLE,
	REASON_EP_OUTSIDE,
	REASON_ENV_UNREADABLE,
	REASON_FRAME_KIND,
	REASON_NOT_CODE,
	REASON_CODE_UNREADABLE,
	REASON_METHOD_UNREADABLE,
	REASON_NO_METHOD,
	REASON_METHOD_OTHER,
	REASON_CALL_SITE,
	REASON_NO_NAME,
	/* soft: the frame is right, and something of it is not known */
	REASON_PC_OUTSIDE,
	REASONS
};

/* One sentence for people, without a full stop; NULL for REASON_NONE. */
const char *validate_reason_text(enum reason reason);

/* A short name for programs ("cfp-outside"); NULL for REASON_NONE. */
const char *validate_reason_name(enum reason reason);

/* What a stack with that finding is. */
enum verdict validate_verdict(enum reason reason);
const char *validate_verdict_name(enum verdict verdict);

/* An execution context's idea of its stack. */
struct stack_facts {
	uint64_t vm_stack, words, cfp; /* addresses in bytes, size in words of 8 bytes */
	uint64_t frame_size;	       /* sizeof(rb_control_frame_t) */
};

/* The most words that a VM stack may have: 1 GiB. */
#define VALIDATE_STACK_WORDS (UINT64_C(1) << 27)
/* The most control frames that are walked. */
#define VALIDATE_FRAMES 1000000u

enum reason validate_stack(const struct stack_facts *facts);

/* What a frame's pointers point to. */
enum pointee { POINTEE_NULL, POINTEE_CODE, POINTEE_IFUNC, POINTEE_METHOD, POINTEE_CREF, POINTEE_SVAR, POINTEE_OTHER };

struct frame_facts {
	uint64_t vm_stack, stack_end; /* [vm_stack, stack_end) */
	uint64_t pc, ep, flags;	      /* flags: ep[VM_ENV_DATA_INDEX_FLAGS] */
	enum pointee iseq;	      /* cfp->iseq */
	enum pointee me_cref;	      /* ep[VM_ENV_DATA_INDEX_ME_CREF] */
	bool env;		      /* ep[VM_ENV_DATA_INDEX_ENV] is an imemo_env */
};

enum frame_kind {
	FRAME_RUBY,
	FRAME_CFUNC,
	FRAME_HIDDEN,	  /* Ruby itself does not show it: a C block, or one that marks the start of a run */
	FRAME_UNREADABLE, /* it failed a check */
};

/* Checks a frame and says what it is. *ret is FRAME_UNREADABLE if the reason is not REASON_NONE. */
enum reason validate_frame(const struct layout *layout, const struct frame_facts *facts, enum frame_kind *ret);

#endif
