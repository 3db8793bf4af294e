/*
 * What the bytes of a stack say, and nothing else of them: two shots of the same fingerprint show the same frames, as
 * long as the objects that they lead to are the same (vm/collections.h).
 *
 * In it is every word of a shot's stack that walking, checking and naming its frames depends on (vm/frame.c,
 * vm/jit_frame.c, vm/call_site.c, decode/resolve.c): the context's own words, and of each frame pc, iseq, ep,
 * jit_return and what its environments say, as far as they are on the stack. Not in it are self, sp and local
 * variables, which change all the time. What lies on the heap is named by its address.
 */
#ifndef RBDUMP_FINGERPRINT_H
#define RBDUMP_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/shot.h"
#include "vm/ruby.h"

struct fingerprint {
	uint64_t *words;
	size_t count, capacity;
};

/*
 * The fingerprint of a covered shot. False if there is none: this Ruby's frames have more to them than their words
 * (until 2.3; ZJIT's, of which a part is on the native stack), its environments lead where the shot has nothing, or out
 * of memory.
 *   ret  its room is used again, and grows; free() its words at last
 */
bool fingerprint_take(const struct ruby *ruby, const struct shot *shot, struct fingerprint *ret);

#endif
