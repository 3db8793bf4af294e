#include "sampling/names_priority.h"

#include "base/clock.h"
#include "base/priority.h"

/* The least time between two looks at the clock of the thread, which is a system call. */
#define LOOK_NS 1000000L

/* The most that the thread may take of a CPU at its priority, and how much it may take at the beginning. */
#define SHARE_MAX (CPU_LIMIT_PERCENT / 100)
#define BEGUN_NS  2e8

void names_priority_keep(struct names_priority *priority, double share)
{
	struct timespec now, used;
	bool may = true;

	if (priority->refused)
		return;
	share = share < SHARE_MAX ? share : SHARE_MAX;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (priority->begun && ns_between(&priority->limit.at, &now) < LOOK_NS)
		return;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	if (priority->begun)
		may = cpu_limit_pause(&priority->limit, share, &now, &used) == 0;
	else
		priority->limit = (struct cpu_limit){.at = now, .used = used, .left_ns = share * BEGUN_NS};
	priority->begun = true;
	if (may && !priority->raised) {
		priority->raised = priority_raise(PRIORITY_NAMES);
		priority->refused = !priority->raised;
	} else if (!may && priority->raised) {
		names_priority_end(priority);
	}
}

void names_priority_end(struct names_priority *priority)
{
	if (priority->raised)
		priority_lower();
	priority->raised = false;
}
