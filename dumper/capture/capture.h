/*
 * What happens while the target is stopped: its registers are taken and the pages copied that are known to be wanted,
 * and, if that was not enough the time before, what else is wanted is looked for.
 */
#ifndef RBDUMP_CAPTURE_H
#define RBDUMP_CAPTURE_H

#include "error.h"
#include "memory/memory.h"
#include "target/target.h"

/* The longest that the target is stopped at once, whatever happens. Half a second for the stop is all that is usual. */
#define CAPTURE_LIMIT_S 5

/* How often a target was copied while it stood still, and how long threads were stopped for that, in all. */
struct pauses {
	unsigned int count;
	double us; /* from the first thread's stop to the last one's going on; 0: all slept, and none was stopped */
};

/*
 * Stops the target, copies the pages that were ever wanted of the memory, lets the target go on, and seals the memory.
 * Threads that sleep in a system call are left asleep. If one of them wakes up meanwhile, the copy is not of one moment
 * and is made again; the third time every thread is stopped.
 *   chase   NULL, or called before the target goes on, to read on through the memory what else there is: for a target
 *           that has moved on to pages that nobody knew of
 *   pauses  this capture's are added
 * After CAPTURE_LIMIT_S rbdump ends with EXIT_FAILED, and says why.
 */
struct error *capture_paused(struct target *target, struct memory *memory, void (*chase)(void *context), void *context,
			     struct pauses *pauses);

/*
 * Copies the same pages of a target that goes on. What they hold need not fit together: memory_has_changed() tells what
 * has stayed the same. The memory is not sealed.
 */
struct error *capture_unpaused(struct memory *memory);

#endif
