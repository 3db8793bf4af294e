#include "sampling/kernel_limit.h"

/* The least time between two checks of the CPU time that was taken. */
#define LIMIT_NS UINT64_C(10000000)

static double share_of(const struct kernel_limit *limit)
{
	return cpu_limit_share(limit->share, *limit->samplers);
}

void kernel_limit_begin(struct kernel_limit *limit, double share, const _Atomic uint32_t *samplers)
{
	struct timespec now, used;

	*limit = (struct kernel_limit){.share = share, .samplers = samplers};
	cpu_limit_clocks(&now, &used);
	cpu_limit_begin(&limit->limit, share_of(limit), &now, &used);
}

void kernel_limit_keep(struct kernel_limit *limit, uint64_t now_ns)
{
	struct timespec now, used;
	long long pause_ns;

	names_priority_keep(&limit->priority, share_of(limit));
	if (now_ns - limit->checked_ns < LIMIT_NS)
		return;
	limit->checked_ns = now_ns;
	cpu_limit_clocks(&now, &used);
	pause_ns = cpu_limit_pause(&limit->limit, share_of(limit), &now, &used);
	if (pause_ns > 0)
		limit->rest_until_ns = now_ns + (uint64_t)pause_ns;
}

bool kernel_limit_drops(const struct kernel_limit *limit, uint64_t time_ns)
{
	return time_ns < limit->rest_until_ns;
}

void kernel_limit_end(struct kernel_limit *limit)
{
	names_priority_end(&limit->priority);
}
