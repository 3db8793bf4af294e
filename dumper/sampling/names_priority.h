/*
 * The priority of the thread that finds names. On a busy machine, this thread must get a CPU soon after a sample was
 * taken. Otherwise, a garbage collection may begin before the names are found, or there may be no room for more
 * samples. So the thread that finds names has a real-time priority (base/priority.h), which is lower than the priority
 * of the thread that takes samples. The thread keeps its real-time priority only as long as its CPU time is within a
 * limit. The limit is the CPU time that all sampling may use, but at most a tenth of one CPU. When this CPU time is
 * used up, the thread gets an ordinary priority. It gets the real-time priority back when some CPU time is available
 * again.
 *
 * Only the thread that finds names may call these functions.
 */
#ifndef RBDUMP_NAMES_PRIORITY_H
#define RBDUMP_NAMES_PRIORITY_H

#include <stdbool.h>
#include <time.h>

#include "sampling/cpu_limit.h"

/* If all members are zero, the thread has its original priority. */
struct names_priority {
	struct cpu_limit limit;
	bool begun, raised;
	bool refused; /* real-time priority is not permitted, or the user has chosen a scheduling policy */
};

/*
 * If the thread's CPU time is within the limit, gives the thread its real-time priority. Otherwise gives the thread its
 * original priority. Call this function often. A call does nothing if the CPU time was last checked less than a
 * millisecond ago.
 *   share  the limit of CPU time, as a share of one CPU
 */
void names_priority_keep(struct names_priority *priority, double share);

/* Gives the thread its original priority again. */
void names_priority_end(struct names_priority *priority);

#endif
