/*
 * The fingerprint of a stack: the words on which its frames and names depend. Two copies with the same fingerprint have
 * the same frames, as long as both copies refer to the same objects (ruby/collections.h).
 *
 * The fingerprint contains every word that is needed to walk, check and name the frames (ruby/frame.c,
 * ruby/jit_frame.c, ruby/call_site.c, ruby/resolve.c). Some of these words belong to the execution context. The other
 * words belong to the frames. For each frame, the fingerprint contains the pc, the iseq, the ep, and a flag that says
 * whether jit_return is set. The fingerprint also contains the frame's environments that are on the stack. The
 * fingerprint does not contain self, sp or local variables, because these values change all the time. An object on the
 * heap is represented by its address.
 */
#ifndef RBDUMP_FINGERPRINT_H
#define RBDUMP_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ruby/ruby.h"
#include "sampling/stack_copy.h"

struct fingerprint {
	uint64_t *words;
	size_t count, capacity;
};

/* What a fingerprint is of. The fingerprint of a whole stack is never equal to the fingerprint of outer frames. */
enum fingerprint_of {
	FINGERPRINT_ALL,
	FINGERPRINT_OUTER /* all frames except the innermost one, which Ruby may not have finished */
};

/*
 * Takes the fingerprint of a copy of a whole stack. Returns false if out of memory, or in any of these cases:
 *   - The target's Ruby is 2.4 or older.
 *   - The stack has a frame of ZJIT. Part of such a frame is on the native stack.
 *   - The stack is very deep.
 *   - The copy lacks an environment that is on the stack.
 * `*ret` can be reused for the next fingerprint, and grows if needed. After the last call of fingerprint_take(), the
 * caller frees the `words` of `*ret`.
 */
bool fingerprint_take(const struct ruby *ruby, const struct stack_copy *copy, enum fingerprint_of of,
		      struct fingerprint *ret);

#endif
