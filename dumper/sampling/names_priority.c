#include "sampling/names_priority.h"

#include "base/clock.h"
#include "base/priority.h"

/* The least time between two looks at the clock of the thread, which is a system call. */
#define LOOK_NS 1000000L

void names_priority_keep(struct names_priority *priority, double share)
{
	struct timespec now, used;
	bool may = true;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (priority->begun && ns_between(&priority->limit.at, &now) < LOOK_NS)
		return;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	if (priority->begun)
		may = cpu_limit_pause(&priority->limit, share, &now, &used) == 0;
	else
		cpu_limit_begin(&priority->limit, share, &now, &used);
	priority->begun = true;
	if (may && !priority->raised)
		priority->raised = priority_raise(PRIORITY_NAMES);
	else if (!may && priority->raised)
		names_priority_end(priority);
}

void names_priority_end(struct names_priority *priority)
{
	if (priority->raised)
		priority_lower();
	priority->raised = false;
}
