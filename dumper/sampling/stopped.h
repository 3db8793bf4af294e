/*
 * Stops a thread while its stack is copied. Every source that stops threads uses this module.
 */
#ifndef RBDUMP_STOPPED_H
#define RBDUMP_STOPPED_H

#include "sampling/source.h"
#include "target/tracee.h"

/*
 * Copies the stack of a stopped thread, and puts the result into the sample. The stop must be short, so the function
 * must not do any work that can be done after the stop. Returns whether the sample has a copy of the whole stack.
 */
typedef bool stopped_copy(struct sampler *sampler, struct tracee *tracee, struct subject *subject,
			  struct sample *sample);

/*
 * Stops the thread, calls `copy`, and lets the thread go on. Then copies the objects that the frames refer to, if the
 * stack is not a cache hit. There is an exception if frames of this target can refer to the native stack. In this case,
 * the objects are always copied, and the thread goes on only afterwards. For a source without the flag `unchecked`,
 * there are two more steps. First, the stack is read once before the first stop. Second, the copied stack is looked up
 * in the cache after each stop.
 *   seen  whether the caller has just seen that the thread exists
 */
void stopped_take(struct sampler *sampler, struct subject *subject, bool seen, stopped_copy *copy,
		  struct sample *sample);

/*
 * Reads the registers of a stopped thread into the sample. If the thread has ended, or if another thread now has the
 * same tid, rejects the sample and returns false.
 */
bool stopped_read_registers(struct tracee *tracee, const struct subject *subject, struct sample *sample);

#endif
