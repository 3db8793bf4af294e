#include "sampling/deadlines.h"

#include "base/clock.h"
#include "base/random.h"

#define GAP_NS 30000LL

#define LATE_SHARE  10
#define LATE_MIN_NS 100000LL

/* An offset differs from the previous offset by at most this share of a period: a quarter. */
#define VARIATION_SHARE 4

/* The most missed deadlines that are reported at once, so that sums of a few such numbers do not overflow. */
#define MISSED_MOST (UINT32_MAX / 8)

struct timespec deadline_next(const struct timespec *deadline, const struct timespec *now)
{
	return ns_between(now, deadline) < GAP_NS ? plus_ns(*now, GAP_NS) : *deadline;
}

bool deadline_wait(const struct timespec *due, deadline_ends *ends, void *context)
{
	for (;;) {
		struct timespec now, slice;

		clock_gettime(CLOCK_MONOTONIC, &now);
		if (ends(context, &now))
			return false;
		if (ns_between(&now, due) <= 0)
			return true;
		slice = plus_ns(now, DEADLINE_SLICE_NS);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, ns_between(&slice, due) > 0 ? &slice : due, NULL);
	}
}

bool deadline_is_late(long long behind_ns, long long period_ns)
{
	return behind_ns > (period_ns / LATE_SHARE > LATE_MIN_NS ? period_ns / LATE_SHARE : LATE_MIN_NS);
}

uint32_t deadlines_missed(struct timespec *deadline, const struct timespec *now, long long period_ns)
{
	const long long missed = ns_between(deadline, now) / period_ns;

	*deadline = plus_ns(*deadline, missed * period_ns);
	return missed < MISSED_MOST ? (uint32_t)missed : MISSED_MOST;
}

long long deadline_vary(long long offset_ns, long long period_ns, uint64_t *random)
{
	const long long most = period_ns / VARIATION_SHARE, width = 2 * most + 1;
	long long offset = offset_ns + (long long)(random_next(random) % (uint64_t)width) - most;

	/* It turns back at both ends of the period. So no offset is more frequent than another. */
	if (offset < 0)
		return -offset;
	return offset < period_ns ? offset : 2 * period_ns - 1 - offset;
}
