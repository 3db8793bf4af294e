#include "sampling/sleep_guard.h"

#include <errno.h>

/*
 * A thread is watched after it was asleep for ASLEEP_FOR rounds. To begin to watch a thread takes some time, so only a few
 * threads begin to be watched in each round: OPEN_A_ROUND, and a share (OPEN_SHARE). A thread that was awake for more than
 * AWAKE_FOR rounds is not watched any more.
 */
#define ASLEEP_FOR   3u
#define OPEN_A_ROUND 4u
#define AWAKE_FOR    8u
/*
 * In each round, a sixteenth of all threads may also begin to be watched, which takes as long as a look at all threads. If
 * more than SLEEP_GUARD_FEW threads and a sixteenth are awake per period, the guard is of no use, because some watched
 * thread is always awake.
 */
#define OPEN_SHARE 16u

/*
 * How many threads wake up is judged over this time: threads often wake up together, so in most periods none is awake, and
 * in some nearly all.
 */
#define MEAN_NS 300000000.0

void sleep_guard_init(struct sleep_guard *guard)
{
	*guard = (struct sleep_guard){.events = switch_events_create()};
}

void sleep_guard_clear(struct sleep_guard *guard)
{
	switch_events_destroy(guard->events);
	guard->events = NULL;
}

void sleep_guard_begin_round(struct sleep_guard *guard)
{
	guard->nr_opened = guard->nr_awake = 0;
}

static void close_events(struct watched_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		switch_event_close(&list->of[i].event);
		list->of[i].guarded = false;
	}
}

/* Ends watching, because the kernel does not allow it or has no room for more. */
static void do_without(struct sleep_guard *guard, struct watched_list *list)
{
	close_events(list);
	switch_events_destroy(guard->events);
	guard->events = NULL;
}

/* Updates the mean. Since the last time, nobody was awake in the periods that had no round like this one. */
static void count_awake(struct sleep_guard *guard, uint64_t now_ns, uint64_t period_ns)
{
	const double since_ns = guard->mean_ns == 0 ? (double)period_ns : (double)(now_ns - guard->mean_ns);
	const double kept = MEAN_NS / (MEAN_NS + since_ns), share = (double)period_ns / (MEAN_NS + (double)period_ns);

	guard->mean_awake = guard->mean_awake * kept + (double)guard->nr_awake * share;
	guard->mean_ns = now_ns;
}

/*
 * If many threads wake up, watching ends, because reports cost the target time: 400 threads that woke up 100 times per
 * second each became half as fast. It begins again only if less than half as many do.
 */
void sleep_guard_end_round(struct sleep_guard *guard, struct watched_list *list, uint64_t now_ns, uint64_t period_ns)
{
	const double many = SLEEP_GUARD_FEW + (double)list->count / OPEN_SHARE;

	count_awake(guard, now_ns, period_ns);
	if (!guard->restless && guard->mean_awake > many)
		close_events(list);
	guard->restless = guard->mean_awake > (guard->restless ? many / 2 : many);
}

/* A busy thread is not watched, because each report costs the target time. */
void sleep_guard_note(struct sleep_guard *guard, struct watched_list *list, struct watched *watched, bool same)
{
	watched->asleep = same ? watched->asleep + 1 : 0;
	watched->awake = same ? 0 : watched->awake + 1;
	guard->nr_awake += !same && watched->subject.tid != 0;
	if (watched->awake > AWAKE_FOR)
		switch_event_close(&watched->event);
	watched->guarded = same && watched->event.ring.fd >= 0;
	if (watched->event.ring.fd >= 0 || watched->asleep < ASLEEP_FOR || list->count <= SLEEP_GUARD_FEW + 1 ||
	    !guard->events || guard->restless || guard->nr_opened >= OPEN_A_ROUND + list->count / OPEN_SHARE)
		return;
	guard->nr_opened++;
	if (!switch_event_open(guard->events, watched->subject.tid, &watched->event) && errno != ESRCH)
		do_without(guard, list);
}

void sleep_guard_begin_check(struct watched *watched)
{
	if (watched->event.ring.fd >= 0)
		watched->mark = switch_event_mark(&watched->event);
}

bool sleep_guard_sleeps_on(const struct watched *watched)
{
	return watched->guarded && !switch_event_reported(&watched->event, watched->mark);
}

bool sleep_guard_was_woken(struct sleep_guard *guard)
{
	guard->woken |= !guard->events || switch_events_happened(guard->events);
	return guard->woken;
}
