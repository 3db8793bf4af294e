#include "sample/turns.h"

#include "moments.h"

#define GAP_NS 30000LL

#define LATE_SHARE  10
#define LATE_MIN_NS 100000LL

/* More are told as so many: who adds some of them up is far from the end of the range. */
#define MISSED_MOST (UINT32_MAX / 8)

struct timespec turn_due(const struct timespec *turn, const struct timespec *now)
{
	return ns_between(now, turn) < GAP_NS ? plus_ns(*now, GAP_NS) : *turn;
}

bool turn_wait(const struct timespec *due, turn_ends *ends, void *context)
{
	for (;;) {
		struct timespec now, slice;

		clock_gettime(CLOCK_MONOTONIC, &now);
		if (ends(context, &now))
			return false;
		if (ns_between(&now, due) <= 0)
			return true;
		slice = plus_ns(now, TURN_SLICE_NS);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, ns_between(&slice, due) > 0 ? &slice : due, NULL);
	}
}

bool turn_is_late(long long behind_ns, long long period_ns)
{
	return behind_ns > (period_ns / LATE_SHARE > LATE_MIN_NS ? period_ns / LATE_SHARE : LATE_MIN_NS);
}

uint32_t turns_missed(struct timespec *turn, const struct timespec *now, long long period_ns)
{
	const long long missed = ns_between(turn, now) / period_ns;

	*turn = plus_ns(*turn, missed * period_ns);
	return missed < MISSED_MOST ? (uint32_t)missed : MISSED_MOST;
}
