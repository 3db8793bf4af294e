#include "sampling/kernel_pace.h"

#include "base/random.h"

/* The shortest distance between two flushes, and how much longer it can be. */
#define FLUSH_LEAST_NS UINT64_C(100000000)
#define FLUSH_MORE_NS  UINT64_C(100000000)

/* How long each stack wakes rbdump after a new stack. */
#define NEW_NS UINT64_C(100000000)

/*
 * If no collection has begun for so long, names may be read later: hardly any of the next stacks meets the beginning of a
 * collection before its names are read.
 */
#define COLLECTED_NS UINT64_C(5000000000)

/* How long each stack wakes rbdump after kernel_pace_ask(). */
#define ASKED_NS UINT64_C(10000000000)

/* How long to wait for stacks that wake rbdump; if those of waiting threads do not; and if none does, at least and at most. */
#define WAIT_MS	      400
#define WAIT_CALM_MS  800
#define WAIT_LEAST_MS 2
#define WAIT_MOST_MS  20

/* How long to wait for a target that does not run. */
#define WAIT_IDLE_MS 1000

/*
 * For fewer stacks of the clock per second, as many wake-ups cost less than to look for them every WAIT_MOST_MS, if there are
 * not too many stacks of waits. And meanwhile, records may fill at most an eighth of the ring.
 */
#define FEW_STACKS 100.0
#define FEW_WAITS  1000.0

void kernel_pace_init(struct kernel_pace *pace, double rate, size_t ring_bytes, uint64_t now_ns)
{
	*pace = (struct kernel_pace){
	    .rate = rate, .ring_bytes = ring_bytes, .wait_ms = WAIT_LEAST_MS, .collected_ns = now_ns};
	kernel_pace_new_stack(pace, now_ns);
}

void kernel_pace_collections(struct kernel_pace *pace, uint64_t collections, uint64_t now_ns)
{
	if (collections == 0 || collections == pace->collections)
		return;
	pace->collections = collections;
	pace->collected_ns = now_ns;
}

void kernel_pace_new_stack(struct kernel_pace *pace, uint64_t now_ns)
{
	if (pace->rate <= KERNEL_RATE_WAKES && now_ns - pace->collected_ns < COLLECTED_NS)
		pace->new_until_ns = now_ns + NEW_NS;
}

void kernel_pace_ask(struct kernel_pace *pace, uint64_t now_ns)
{
	pace->asked_until_ns = now_ns + ASKED_NS;
}

void kernel_pace_found(struct kernel_pace *pace, size_t bytes)
{
	pace->bytes += bytes;
	/* The stacks of a whole CPU may come together, so most of the ring stays free. */
	if (bytes > pace->ring_bytes / 8) {
		pace->wait_ms = WAIT_LEAST_MS;
		pace->calm = pace->idle = false;
	} else if (bytes < pace->ring_bytes / 16 && pace->wait_ms < WAIT_MOST_MS)
		pace->wait_ms++;
}

void kernel_pace_flushed(struct kernel_pace *pace, size_t records, size_t clock_stacks, size_t wait_stacks,
			 double seconds)
{
	pace->idle = records == 0;
	pace->calm = (double)clock_stacks < FEW_STACKS * seconds && (double)wait_stacks < FEW_WAITS * seconds &&
		     (double)pace->bytes * WAIT_CALM_MS / 1000 < (double)pace->ring_bytes / 8 * seconds;
	pace->bytes = 0;
}

uint64_t kernel_pace_next_flush(uint64_t now_ns, uint64_t *random)
{
	return now_ns + FLUSH_LEAST_NS + random_next(random) % FLUSH_MORE_NS;
}

enum kernel_wakes kernel_pace_wakes(const struct kernel_pace *pace, uint64_t now_ns)
{
	if (now_ns < pace->new_until_ns || now_ns < pace->asked_until_ns)
		return KERNEL_WAKES_ALL;
	return pace->calm ? KERNEL_WAKES_CLOCK : KERNEL_WAKES_NONE;
}

int kernel_pace_wait_ms(const struct kernel_pace *pace, enum kernel_wakes wakes, uint64_t now_ns, uint64_t until_ns)
{
	const uint64_t left_ms = until_ns > now_ns ? (until_ns - now_ns) / 1000000 + 1 : 1;
	int ret = pace->wait_ms;

	if (pace->idle)
		ret = WAIT_IDLE_MS;
	else if (wakes != KERNEL_WAKES_NONE)
		ret = wakes == KERNEL_WAKES_CLOCK ? WAIT_CALM_MS : WAIT_MS;
	return until_ns != 0 && left_ms < (uint64_t)ret ? (int)left_ms : ret;
}
