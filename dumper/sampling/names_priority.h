/*
 * The priority of the thread that finds names. On a busy machine this thread must get a CPU soon after a sample was
 * taken: otherwise a garbage collection may begin before the names are found, or there is no room for more samples. So
 * it has a real-time priority (base/priority.h), below that of the thread that takes samples. It keeps this priority
 * only while it takes no more CPU time than sampling may take in all, and no more than a tenth of a CPU. When it has
 * used up this CPU time, it has the priority of any other program until some of the time is left again.
 *
 * All functions are for that thread.
 */
#ifndef RBDUMP_NAMES_PRIORITY_H
#define RBDUMP_NAMES_PRIORITY_H

#include <stdbool.h>
#include <time.h>

#include "sampling/cpu_limit.h"

/* All zero: the thread has its own priority. */
struct names_priority {
	struct cpu_limit limit;
	bool begun, raised;
	bool refused; /* real-time priority is not permitted, or the user has chosen a scheduling policy */
};

/*
 * Gives the thread the priority that it may have now. Call it often: it does nothing if a millisecond has not passed.
 *   share  the limit of CPU time, as a share of one CPU
 */
void names_priority_keep(struct names_priority *priority, double share);

/* Gives the thread its own priority again. */
void names_priority_end(struct names_priority *priority);

#endif
