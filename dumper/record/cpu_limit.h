/*
 * How much of a CPU sampling may take. It has a real-time priority where it may: what it takes, no one else gets. Each
 * round is paid for from a share of the time that passes; when that is spent, the next round waits until it is paid
 * for.
 */
#ifndef RBDUMP_CPU_LIMIT_H
#define RBDUMP_CPU_LIMIT_H

#include <time.h>

/* What is allowed of one CPU, in percent, at up to so many samples a second, if nothing else is asked for. */
#define CPU_LIMIT_PERCENT 10.0
#define CPU_LIMIT_RATE	  99.0
/* Who asks for a higher rate asks for what it takes, in proportion; but for no more than this. */
#define CPU_LIMIT_MOST_PERCENT 90.0

/* The default for a rate, in percent. */
double cpu_limit_for(double rate);

struct cpu_limit {
	struct timespec at, used; /* the last time that it was reckoned up: when, and CPU time used by then */
	double left_ns;		  /* CPU time; negative: it is not paid for */
};

/*
 * Begins to reckon. What is looked at first costs most, for all names are new: three seconds' share is there.
 *   share  of one CPU, above 0
 *   used   by CLOCK_PROCESS_CPUTIME_ID or the like
 */
void cpu_limit_begin(struct cpu_limit *limit, double share, const struct timespec *now, const struct timespec *used);

/*
 * Reckons up what was used since the last time. No more than a second's share is saved. Returns for how many
 * nanoseconds from now on nothing should be used; 0 if there is some left.
 */
long long cpu_limit_pause(struct cpu_limit *limit, double share, const struct timespec *now,
			  const struct timespec *used);

#endif
