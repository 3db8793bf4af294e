/*
 * The fingerprint of a stack: the words that determine the frames of the stack and the names of these frames. Two
 * copies with the same fingerprint have the same frames, as long as both copies refer to the same objects
 * (ruby/collections.h).
 *
 * The fingerprint contains every word that is needed to walk, check and name the frames (ruby/frame.c,
 * ruby/jit_frame.c, ruby/call_site.c, ruby/resolve.c). Some of these words belong to the execution context. The other
 * words belong to the frames. For each frame, the fingerprint contains the pc, the iseq, the ep, and a flag that says
 * whether jit_return is set. If environments of the frame are on the stack, the fingerprint also contains three words
 * of each such environment (ruby/environment.h). The fingerprint does not contain self, sp or local variables, because
 * these values change all the time. An object on the heap is represented by its address.
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

/*
 * Which frames a fingerprint covers. The fingerprint of a whole stack is never equal to a fingerprint that covers only
 * the outer frames.
 */
enum fingerprint_of {
	FINGERPRINT_ALL,
	FINGERPRINT_OUTER /* all frames except the innermost frame, which may be incomplete */
};

/*
 * Takes the fingerprint of `copy`, which must contain a whole stack. Returns false if there is not enough memory, or in
 * any of these cases:
 *   - The target's Ruby is 2.4 or older.
 *   - The stack has a frame of ZJIT. Part of such a frame is on the native stack.
 *   - The stack has more than about 2,000 frames.
 *   - The copy lacks an environment that is on the stack.
 * `*ret` can be reused for the next fingerprint, and grows if needed. After the last call of fingerprint_take(), the
 * caller frees the `words` of `*ret`.
 */
bool fingerprint_take(const struct ruby *ruby, const struct stack_copy *copy, enum fingerprint_of of,
		      struct fingerprint *ret);

#endif
