/*
 * Limits the CPU time that sampling takes. Sampling runs at real-time priority if permitted. While a thread with this
 * priority uses a CPU, ordinary programs cannot use that CPU. So sampling has a budget of CPU time. The budget grows by
 * a share of the elapsed time, and shrinks by the CPU time that sampling uses. If sampling has used more than its
 * budget, the next round of sampling waits.
 */
#ifndef RBDUMP_CPU_LIMIT_H
#define RBDUMP_CPU_LIMIT_H

#include <stdint.h>
#include <time.h>

/* The default limit, in percent of one CPU, for rates up to CPU_LIMIT_RATE samples per second. */
#define CPU_LIMIT_PERCENT 10.0
#define CPU_LIMIT_RATE	  99.0
/* For higher rates, the default limit grows in proportion to the rate, up to CPU_LIMIT_MOST_PERCENT. */
#define CPU_LIMIT_MOST_PERCENT 90.0

/* The default limit in percent of one CPU. `rate` is in samples per second. */
double cpu_limit_for(double rate);

/*
 * Divides a limit among the processes that take samples. `samplers` is the number of these processes. `all` is the
 * share of one CPU that these processes may use together. Returns the share of one CPU that each process may use.
 */
double cpu_limit_share(double all, uint32_t samplers);

/*
 * Reads the two times that the functions below need. `now` is the current time, by CLOCK_MONOTONIC. `used` is the CPU
 * time of all threads of this process. All threads count, because each sample also causes work for the thread that
 * finds names.
 */
void cpu_limit_clocks(struct timespec *now, struct timespec *used);

struct cpu_limit {
	struct timespec at;   /* the time of the last update */
	struct timespec used; /* the CPU time used until the last update */
	double left_ns;	      /* the CPU time that is left in the budget; negative: the budget is overspent */
};

/*
 * Initializes `limit`. The first samples cost the most CPU time, because no names are known yet. So the budget starts
 * at `share` times three seconds.
 *   share  the limit as a share of one CPU, above 0
 *   now    by CLOCK_MONOTONIC
 *   used   the CPU time used so far, by CLOCK_PROCESS_CPUTIME_ID or a similar clock
 */
void cpu_limit_begin(struct cpu_limit *limit, double share, const struct timespec *now, const struct timespec *used);

/*
 * Adds CPU time to the budget: `share` times the time since the last update. This addition does not raise the budget
 * above `share` times one second. Then subtracts the CPU time that has been used since the last update. Returns how
 * many nanoseconds sampling must pause. Returns 0 if the budget is not overspent.
 */
long long cpu_limit_pause(struct cpu_limit *limit, double share, const struct timespec *now,
			  const struct timespec *used);

#endif
