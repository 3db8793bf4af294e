#include "base/priority.h"

#include <sched.h>

bool priority_raise(enum priority priority)
{
	int policy = sched_getscheduler(0);

	if (policy == SCHED_OTHER &&
	    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = (int)priority}) == 0)
		return true;
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

void priority_lower(void)
{
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
}
