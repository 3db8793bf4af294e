/*
 * Stops the target and copies its memory. While the target is stopped, rbdump reads the registers, and copies the pages
 * that are already known to be needed. If the caller gives a `chase` function, rbdump then calls this function while
 * the target is still stopped. The `chase` function walks the stacks, and thus copies the other pages that are needed.
 */
#ifndef RBDUMP_SNAPSHOT_H
#define RBDUMP_SNAPSHOT_H

#include "base/error.h"
#include "memory/memory.h"
#include "target/target.h"

/*
 * The maximum length of a pause of the target, in seconds. A pause includes the time until all threads have stopped.
 * This time is at most half a second.
 */
#define SNAPSHOT_LIMIT_S 5

/*
 * How often a target was stopped and copied, and how long the pauses took in total. A pause begins when the first
 * thread stops, and ends when the last thread goes on.
 */
struct pauses {
	unsigned int count;
	double us; /* the total length of the pauses in microseconds; 0: no thread had to be stopped */
};

/*
 * Stops the target, copies pages, lets the target go on, and seals `memory`. Copies all pages that were ever read
 * through `memory` or noted as wanted (memory.h). Threads that sleep in a system call are not stopped. If such a thread
 * wakes up during the copy, the pages can be from different moments, so the pages are copied again. If a sleeping thread
 * wakes up during the second copy, too, all threads are stopped for a third copy. Fails if live_stop() fails, if rbdump
 * cannot start a thread, or if there is not enough memory.
 *   chase   a function that is called with `context` while the target is still stopped; NULL: no function is called.
 *           Since the last look, the target may have begun to use other pages. `chase` reads these pages, so these
 *           pages are copied, too
 *   pauses  snapshot_paused() adds the pauses that it makes to the members `count` and `us`
 *
 * If the target is still stopped after SNAPSHOT_LIMIT_S seconds, prints the reason, and ends rbdump with EXIT_FAILED.
 */
struct error *snapshot_paused(struct target *target, struct memory *memory, void (*chase)(void *context), void *context,
			      struct pauses *pauses);

/*
 * Like snapshot_paused(), but copies only the pages that contain changing data (memory_forget_changing()). Changing
 * data is data that can change as soon as a thread of the target goes on. Calls memory_seal_changing() instead of
 * memory_seal().
 *   chase  a function that is called with `context` while the target is still stopped. If changing data is now on other
 *          pages than before, `chase` copies these other pages, too
 */
struct error *snapshot_changing(struct target *target, struct memory *memory, void (*chase)(void *context),
				void *context, struct pauses *pauses);

/*
 * Stops all threads of the target, including those that sleep, calls `work` with `context`, and lets the target go on.
 * Fails in the same cases as snapshot_paused(). If the target is still stopped after SNAPSHOT_LIMIT_S seconds, prints
 * the reason, and ends rbdump with EXIT_FAILED.
 */
struct error *snapshot_held(struct target *target, void (*work)(void *context), void *context, struct pauses *pauses);

/*
 * Copies the same pages as snapshot_paused(), but while the target runs. Therefore, the pages can be from different
 * moments. Call memory_has_changed() to find out whether bytes have changed since they were copied. Does not seal
 * `memory`. Fails if there is not enough memory.
 */
struct error *snapshot_unpaused(struct memory *memory);

#endif
