/*
 * The priority of the thread that finds the names of stack frames. On a busy machine, this thread must get a CPU soon
 * after a sample was taken. Otherwise, a garbage collection may begin before the names are found, or the buffer for
 * samples may become full. So the thread that finds names has a real-time priority (base/priority.h). The thread that
 * takes samples has a higher real-time priority. The thread that finds names keeps its real-time priority only as long
 * as its CPU time is within a limit. This limit is the share of one CPU that sampling may use in this process
 * (cpu_limit_share()), but at most a tenth of one CPU. When the thread that finds names has used up this CPU time, it
 * gets its original priority back. Later, when the limit allows this thread more CPU time, it gets a real-time priority
 * again.
 *
 * Only the thread that finds names may call these functions.
 */
#ifndef RBDUMP_NAMES_PRIORITY_H
#define RBDUMP_NAMES_PRIORITY_H

#include <stdbool.h>
#include <time.h>

#include "sampling/cpu_limit.h"

/*
 * Before the first call of names_priority_keep(), all members must be zero. Until that call, the thread has its
 * original priority.
 */
struct names_priority {
	struct cpu_limit limit;
	bool begun, raised;
	bool refused; /* real-time priority is not permitted, or the user has chosen another scheduling policy */
};

/*
 * If the thread's CPU time is within the limit, gives the thread a real-time priority. Otherwise, gives the thread its
 * original priority. Call this function often. The function does nothing if it checked the CPU time less than a
 * millisecond ago.
 *   share  the limit of CPU time, as a share of one CPU
 */
void names_priority_keep(struct names_priority *priority, double share);

/* Gives the thread its original priority again. */
void names_priority_end(struct names_priority *priority);

#endif
