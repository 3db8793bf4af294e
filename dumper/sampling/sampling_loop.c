#include "sampling/sampling_loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/watchdog.h"
#include "sampling/cpu_limit.h"
#include "sampling/deadlines.h"
#include "sampling/mixed_stack.h"
#include "sampling/names_priority.h"
#include "sampling/native_frames.h"
#include "target/hold.h"

/* How many bytes of samples the queue has room for: those of some hundred deep stacks. */
#define QUEUE_BYTES	  (8u << 20)
#define QUEUE_WHOLE_BYTES (32u << 20) /* if they have their native stacks with them */

/* How often native_frames_forget() or mixed_stacks_forget() is called. */
#define FORGET_NS 5000000000L

/* The least time between two checks of the CPU time that was taken. */
#define LIMIT_NS 10000000L

struct sampling_loop {
	struct stream stream;
	struct sampling_loop_options options;
	struct observation_queue *queue;
	struct rounds *rounds;
	struct native_frames *native; /* NULL: not wanted, or only with all others */
	struct mixed_stacks *mixed;   /* NULL: not all native functions are wanted */
	struct inner_functions inner;
	struct observation seen;      /* the last observation, with native frames */
	struct timespec forgotten;    /* when what is known of methods was last forgotten */
	struct timespec period_start; /* when the period of the next round begins; 0: there was no round */
	long long offset;	      /* how long after that the deadline of the next round is, in ns */
	uint64_t random;	      /* of the offsets (base/random.h) */
	uint32_t untold;	      /* missed rounds that were not reported yet */
	struct cpu_limit limit;
	struct names_priority names; /* of the thread that calls next() */
	uint32_t skipped;	     /* rounds that the limit did not allow, and that were not reported yet */
	uint64_t rest_ns;	     /* how long sampling pauses before the next round because of the limit */
	_Atomic bool stopped;
	pthread_t thread;
};

static struct sampling_loop *loop_of(struct stream *stream)
{
	return (struct sampling_loop *)(void *)stream;
}

static bool is_over(const struct sampling_loop *loop)
{
	return loop->stopped || *loop->options.stop;
}

static bool ends(void *context, const struct timespec *now)
{
	(void)now;
	return is_over(context);
}

static double share_of(const struct sampling_loop *loop)
{
	return cpu_limit_share(loop->options.max_cpu, *loop->options.samplers);
}

static struct timespec deadline_of(const struct sampling_loop *loop)
{
	return plus_ns(loop->period_start, loop->offset);
}

/* Delays the next round for as long as the limit of CPU time demands. */
static void keep_limit(struct sampling_loop *loop, long long period)
{
	const struct timespec deadline = deadline_of(loop);
	struct timespec now, used, earliest;
	long long pause, rounds;

	/* To read the CPU clock of a process takes a system call. So at high rates it is not read in each round. */
	loop->rest_ns = 0;
	if (ns_between(&loop->limit.at, &deadline) < LIMIT_NS)
		return;
	cpu_limit_clocks(&now, &used);
	pause = cpu_limit_pause(&loop->limit, share_of(loop), &now, &used);
	earliest = plus_ns(now, pause);
	rounds = pause > 0 ? (ns_between(&deadline, &earliest) + period - 1) / period : 0;
	loop->rest_ns = pause > 0 ? (uint64_t)pause : 0;
	if (rounds <= 0)
		return;
	loop->period_start = plus_ns(loop->period_start, rounds * period);
	loop->skipped += (uint32_t)rounds;
}

static void *run(void *argument)
{
	struct sampling_loop *loop = argument;
	long long period = (long long)(1e9 / loop->options.rounds.rate);

	rounds_enter(loop->rounds);
	/* After a round that got stuck, the period is kept, so that rounds that were missed meanwhile are reported. */
	if (loop->period_start.tv_sec == 0) {
		clock_gettime(CLOCK_MONOTONIC, &loop->period_start);
		loop->random = ns_of(&loop->period_start);
	}
	if (loop->limit.at.tv_sec == 0) {
		struct timespec now, used;

		cpu_limit_clocks(&now, &used);
		cpu_limit_begin(&loop->limit, share_of(loop), &now, &used);
	}
	while (!rounds_are_stuck(loop->rounds)) {
		struct timespec deadline = deadline_of(loop), due, now;
		struct lateness late;

		observation_queue_wait_for_pace(loop->queue);
		clock_gettime(CLOCK_MONOTONIC, &now);
		due = deadline_next(&deadline, &now);
		if (!deadline_wait(&due, ends, loop))
			break;
		clock_gettime(CLOCK_MONOTONIC, &now);
		late.missed = loop->untold + deadlines_missed(&deadline, &now, period);
		late.late = late.missed + deadline_is_late(ns_between(&deadline, &now), period);
		if (!observation_queue_is_full(loop->queue) &&
		    rounds_take(loop->rounds, &late, loop->skipped, loop->rest_ns))
			loop->untold = loop->skipped = 0;
		else
			loop->untold = late.missed + 1;
		loop->period_start = plus_ns(deadline, period - loop->offset);
		loop->offset = deadline_vary(loop->offset, period, &loop->random);
		keep_limit(loop, period);
	}
	observation_queue_end(loop->queue);
	return NULL;
}

static struct error *begin(struct stream *stream)
{
	struct sampling_loop *loop = loop_of(stream);

	observation_queue_begin(loop->queue);
	/* The new thread blocks all signals, also SIGCHLD, for which it waits (target/tracee.h). */
	return thread_start(&loop->thread, run, loop);
}

/* Adds native frames to an observation that has a stack of its own. */
static const struct observation *add_native(struct sampling_loop *loop, const struct observation *from)
{
	struct observation *seen = &loop->seen;

	*seen = *from;
	if (seen->thread == 0 || seen->same || seen->lost)
		return seen;
	if (elapsed_ns(&loop->forgotten) > FORGET_NS) {
		clock_gettime(CLOCK_MONOTONIC, &loop->forgotten);
		if (loop->mixed)
			mixed_stacks_forget(loop->mixed);
		else
			native_frames_forget(loop->native);
	}
	if (loop->mixed) {
		watchdog_reads(READING_NAMES);
		seen->mixed = seen->sample ? mixed_stacks_take(loop->mixed, seen->sample) : NULL;
		watchdog_has_read(READING_NAMES);
		return seen;
	}
	/* If there is no sample, there was no room for it. */
	loop->inner.count = 0;
	loop->inner.cut = true;
	watchdog_reads(READING_NAMES);
	if (seen->sample)
		native_frames_take(loop->native, seen->sample, &loop->inner);
	watchdog_has_read(READING_NAMES);
	seen->native = &loop->inner;
	if (seen->sample && seen->sample->cache.result == CACHE_HIT)
		seen->sample = NULL;
	return seen;
}

/* Waits for a tenth of a second. */
static const struct observation *next(struct stream *stream, bool *timed_out)
{
	struct sampling_loop *loop = loop_of(stream);
	const struct observation *seen;
	struct timespec until;

	names_priority_keep(&loop->names, share_of(loop));
	clock_gettime(CLOCK_MONOTONIC, &until);
	until = plus_ns(until, 2 * DEADLINE_SLICE_NS);
	seen = observation_queue_next(loop->queue, &until, timed_out);
	return seen && (loop->native || loop->mixed) ? add_native(loop, seen) : seen;
}

static void done(struct stream *stream)
{
	observation_queue_done(loop_of(stream)->queue);
}

static void keep_pace(struct stream *stream)
{
	observation_queue_keep_pace(loop_of(stream)->queue);
}

static void ask(struct stream *stream, uint64_t thread)
{
	observation_queue_ask(loop_of(stream)->queue, thread);
}

static void stop(struct stream *stream)
{
	loop_of(stream)->stopped = true;
}

static bool end(struct stream *stream)
{
	struct sampling_loop *loop = loop_of(stream);

	names_priority_end(&loop->names);
	/* Makes room, so that the sampling thread does not wait for room and can end. */
	while (observation_queue_next(loop->queue, NULL, NULL))
		observation_queue_done(loop->queue);
	pthread_join(loop->thread, NULL);
	/* The kernel has detached threads that did not stop in time, because the sampling thread has ended. */
	hold_end();
	return rounds_are_stuck(loop->rounds) && !is_over(loop);
}

static void destroy(struct stream *stream)
{
	struct sampling_loop *loop = loop_of(stream);

	rounds_destroy(loop->rounds);
	native_frames_destroy(loop->native);
	mixed_stacks_destroy(loop->mixed);
	observation_queue_destroy(loop->queue);
	free(loop);
}

struct error *sampling_loop_create(const struct session *session, const struct sampling_loop_options *options,
				   struct stream **ret)
{
	static const struct stream_operations operations = {
	    .begin = begin,
	    .next = next,
	    .done = done,
	    .keep_pace = keep_pace,
	    .ask = ask,
	    .stop = stop,
	    .end = end,
	    .destroy = destroy,
	};
	struct sampling_loop *loop = calloc(1, sizeof(*loop));
	struct error *error = NULL;

	if (!loop)
		return error_no_memory();
	loop->stream.operations = &operations;
	loop->options = *options;
	if (options->rounds.native == NATIVE_INNERMOST)
		error = native_frames_create(session, false, &loop->native);
	else if (options->rounds.native == NATIVE_WHOLE)
		error = mixed_stacks_create(session, &loop->mixed);
	if (!error) {
		loop->queue = observation_queue_create(
		    options->rounds.native == NATIVE_WHOLE ? QUEUE_WHOLE_BYTES : QUEUE_BYTES, false);
		loop->rounds = loop->queue ? rounds_create(session, &options->rounds, loop->queue) : NULL;
		error = loop->rounds ? NULL : error_no_memory();
	}
	if (error) {
		destroy(&loop->stream);
		return error;
	}
	*ret = &loop->stream;
	return NULL;
}
