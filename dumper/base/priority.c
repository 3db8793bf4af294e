#include "base/priority.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>

static bool set(int priority)
{
	return sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = priority}) == 0;
}

bool priority_raise(enum priority priority)
{
	if (sched_getscheduler(0) != SCHED_OTHER)
		return false;
	/* What finds names must not get in the way of what takes samples. */
	if (priority == PRIORITY_NAMES)
		return set(PRIORITY_SAMPLES) && set(PRIORITY_NAMES);
	for (int lower = (int)priority; lower > 0; lower--)
		if (set(lower))
			return true;
	return false;
}

void priority_lower(void)
{
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
}

bool priority_is_real_time(void)
{
	const int policy = sched_getscheduler(0);

	return policy == SCHED_FIFO || policy == SCHED_RR;
}

void priority_give_way(void)
{
	int nice;

	/* For Linux, process 0 is the calling thread. -1 can be a nice value, and can be an error. */
	errno = 0;
	nice = getpriority(PRIO_PROCESS, 0);
	if (errno == 0 && nice < PRIORITY_NICE)
		setpriority(PRIO_PROCESS, 0, PRIORITY_NICE);
}
