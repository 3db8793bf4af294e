/*
 * Checks whether the bytes of a copied stack can be a real stack of a Ruby thread. The checks do not read the target's
 * memory, so their results depend only on their arguments.
 *
 * If a check returns a reason other than REASON_NONE or REASON_TOO_DEEP, the copied bytes contradict each other: either
 * the stack changed during the copy, or the layout is wrong. The checks follow the source code of Ruby 1.9.3 to 4.0.5,
 * and of Ruby head: vm_core.h (VM_FRAME_MAGIC_*, VM_ENV_FLAG_*, vm_assert_env).
 */
#ifndef RBDUMP_VALIDATE_H
#define RBDUMP_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "layout/layout.h"

enum verdict {
	VERDICT_COMPLETE,
	VERDICT_TRUNCATED,  /* the frames that are shown are right, but some frames are missing */
	VERDICT_TORN,	    /* the stack was changing while it was copied */
	VERDICT_UNREADABLE, /* there are no frames to show */
};

enum reason {
	REASON_NONE,
	/* Reasons that concern a stack: */
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
	REASON_LOST,
	REASON_NOT_RESIDENT,
	REASON_NOT_SAMPLED,
	/* Reasons that concern a frame: */
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
	/*
	 * rbdump does not reject a stack for REASON_PC_OUTSIDE: the frame is right, but the line of the frame is not
	 * known.
	 */
	REASON_PC_OUTSIDE,
	REASONS
};

/* Returns the reason as a sentence for the user, without a full stop at the end. Returns NULL for REASON_NONE. */
const char *validate_reason_text(enum reason reason);

/* Returns a short name of the reason, such as "cfp-outside", for use by programs. Returns NULL for REASON_NONE. */
const char *validate_reason_name(enum reason reason);

/* Returns the verdict that `reason` leads to. */
enum verdict validate_verdict(enum reason reason);

/* The name of a verdict in JSON. */
const char *validate_verdict_name(enum verdict verdict);

/* What an execution context stores about a VM stack: its location, its size, and the address of its innermost frame. */
struct stack_facts {
	uint64_t vm_stack, words, cfp; /* vm_stack and cfp are addresses; words is the stack's size in 8-byte words */
	uint64_t frame_size;	       /* sizeof(rb_control_frame_t), in bytes */
};

/* The maximum size of a VM stack that validate_stack() accepts: 1 GiB, in words of 8 bytes. */
#define VALIDATE_STACK_WORDS (UINT64_C(1) << 27)
/* The maximum number of control frames in a stack that validate_stack() accepts. */
#define VALIDATE_FRAMES 1000000u

/* Checks a stack as a whole. Returns what is wrong with the stack, or REASON_NONE if nothing is wrong. */
enum reason validate_stack(const struct stack_facts *facts);

/* What kind of object a pointer points to. The pointer is in a control frame, or in the environment of this frame. */
enum pointee { POINTEE_NULL, POINTEE_CODE, POINTEE_IFUNC, POINTEE_METHOD, POINTEE_CREF, POINTEE_SVAR, POINTEE_OTHER };

struct frame_facts {
	uint64_t vm_stack, stack_end; /* the stack is the range [vm_stack, stack_end) */
	uint64_t pc, ep, flags;	      /* flags are ep[VM_ENV_DATA_INDEX_FLAGS] */
	enum pointee iseq;	      /* cfp->iseq */
	enum pointee me_cref;	      /* ep[VM_ENV_DATA_INDEX_ME_CREF] */
	bool env;		      /* ep[VM_ENV_DATA_INDEX_ENV] is an imemo_env (in Ruby 2.3 and older, a T_DATA) */
};

enum frame_kind {
	FRAME_RUBY,
	FRAME_CFUNC,
	/*
	 * A frame that Ruby's own backtraces omit. Such a frame belongs to a block that is written in C, or is only a
	 * marker that Ruby pushed when it began to run code.
	 */
	FRAME_HIDDEN,
	FRAME_UNREADABLE, /* the frame failed a check */
};

/*
 * Checks a frame. Returns what is wrong with the frame, or REASON_NONE if nothing is wrong. *ret receives the kind of
 * the frame, or FRAME_UNREADABLE if something is wrong.
 */
enum reason validate_frame(const struct layout *layout, const struct frame_facts *facts, enum frame_kind *ret);

#endif
