#include "sampling/cpu_limit.h"

#include "base/clock.h"

#define SAVED_NS 1e9
#define BEGUN_NS 3e9

/* More time than one round can take. A double represents it exactly to the nanosecond. */
#define PAUSE_MAX_NS 1e12

double cpu_limit_for(double rate)
{
	double percent = rate > CPU_LIMIT_RATE ? CPU_LIMIT_PERCENT * rate / CPU_LIMIT_RATE : CPU_LIMIT_PERCENT;

	return percent < CPU_LIMIT_MOST_PERCENT ? percent : CPU_LIMIT_MOST_PERCENT;
}

double cpu_limit_share(double all, uint32_t samplers)
{
	return all / (samplers > 1 ? samplers : 1);
}

void cpu_limit_clocks(struct timespec *now, struct timespec *used)
{
	clock_gettime(CLOCK_MONOTONIC, now);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, used);
}

void cpu_limit_begin(struct cpu_limit *limit, double share, const struct timespec *now, const struct timespec *used)
{
	*limit = (struct cpu_limit){.at = *now, .used = *used, .left_ns = share * BEGUN_NS};
}

long long cpu_limit_pause(struct cpu_limit *limit, double share, const struct timespec *now,
			  const struct timespec *used)
{
	const double most = limit->left_ns > share * SAVED_NS ? limit->left_ns : share * SAVED_NS;
	double pause;

	limit->left_ns += share * (double)ns_between(&limit->at, now);
	limit->left_ns = limit->left_ns < most ? limit->left_ns : most;
	limit->left_ns -= (double)ns_between(&limit->used, used);
	limit->at = *now;
	limit->used = *used;
	if (limit->left_ns >= 0)
		return 0;
	pause = -limit->left_ns / share;
	return (long long)(pause < PAUSE_MAX_NS ? pause : PAUSE_MAX_NS);
}
