#include "sampling/kernel_stream.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/watchdog.h"
#include "sampling/kernel_current.h"
#include "sampling/kernel_limit.h"
#include "sampling/kernel_pace.h"
#include "sampling/kernel_process.h"
#include "sampling/kernel_sample.h"
#include "sampling/kernel_threads.h"
#include "sampling/native_frames.h"
#include "sampling/old_objects.h"

/* The room for records: of some 500 stacks of 100 frames. */
#define RING_BYTES (8u << 20)

/* A record may be written so long after its time. */
#define MARGIN_NS UINT64_C(1000000)

/* A wait that lasts so long, and was not copied, is read meanwhile. */
#define LONG_NS UINT64_C(40000000)

/* How often all names are made anew: a class may have got another name (sampling/rounds.c). */
#define CACHE_NS UINT64_C(5000000000)

enum phase { PHASE_RECORDS, PHASE_WAITS, PHASE_PIECES, PHASE_OVER };

struct kernel_stream {
	struct stream stream;
	const struct session *session;
	struct kernel_stream_options options;
	struct kernel_ring *ring;
	struct sampler *sampler;
	struct stack_cache *cache;
	struct old_objects *old;
	struct sample sample;
	struct native_frames *native; /* NULL: native frames are not wanted */
	struct inner_functions inner;
	struct time_slots slots;
	struct kernel_threads threads;

	enum phase phase;
	size_t at, piece;  /* in PHASE_WAITS and PHASE_PIECES */
	uint64_t until_ns; /* up to where the time lines are laid in this flush */
	uint64_t flushed_ns, cached_ns;
	uint64_t flush_ns;	  /* when the next flush is due */
	bool holds;		  /* a record of the ring is still in use */
	uint64_t behind_ns;	  /* of the next record, if there was no time to take it before the flush; else 0 */
	uint64_t no_slots;	  /* how many stacks of the clock had no slot */
	uint64_t lost, told_lost; /* how many stacks of the clock were lost, and how many of them were told */
	uint64_t marked;	  /* how many records had been lost when the time lines last said all of that */
	struct kernel_limit limit;
	uint32_t skipped; /* how many stacks of the clock it has dropped that were not reported yet */
	struct kernel_facts facts;
	struct kernel_pace pace;
	/* How many records were taken since the last flush; and how many of them have the stack of each kind. */
	size_t records, clock_stacks, wait_stacks;
	bool follows;	  /* the program in the kernel samples the process */
	uint64_t left_ns; /* when that has ended */
	bool stopped;
	struct observation seen;
};

static struct kernel_stream *of(struct stream *stream)
{
	return (struct kernel_stream *)(void *)stream;
}

static bool is_over(const struct kernel_stream *stream)
{
	return stream->stopped || *stream->options.stop;
}

/* Ends the sampling of the process. */
static void leave(struct kernel_stream *stream)
{
	if (!stream->follows)
		return;
	stream->left_ns = monotonic_ns();
	kernel_maps_leave(&stream->options.maps, stream->session->target->pid);
	stream->follows = false;
}

/* ---- observations */

/* A time by the clock of observations. */
static uint64_t since_origin(const struct kernel_stream *stream, uint64_t time_ns)
{
	const uint64_t origin_ns = ns_of(&stream->options.origin);

	return time_ns > origin_ns ? time_ns - origin_ns : 0;
}

static void begin_observation(struct kernel_stream *stream, const struct kernel_follow *follow, uint64_t time_ns)
{
	stream->seen = (struct observation){
	    .time_ns = since_origin(stream, time_ns),
	    .thread = follow->thread.address,
	    .tid = follow->subject.tid,
	    .ractor = follow->thread.ractor,
	    .name = follow->thread.name,
	    .main = follow->thread.main,
	    .collections = follow->collections,
	    .syscall = -1,
	    .stack = CACHE_NONE,
	    .cache = stream->cache,
	};
}

/* Hands on the sample, to be kept in a slot. */
static const struct observation *keep(struct kernel_stream *stream, const struct kernel_follow *follow,
				      uint64_t time_ns, uint32_t slot)
{
	const uint64_t now_ns = monotonic_ns();

	begin_observation(stream, follow, time_ns);
	stream->seen.native = stream->native ? &stream->inner : NULL;
	stream->seen.keeps = true;
	stream->seen.kept = slot;
	stream->seen.stack = stream->sample.cache.entry;
	stream->seen.sample = stream->sample.cache.result == CACHE_HIT ? NULL : &stream->sample;
	kernel_pace_collections(&stream->pace, stream->sample.cache.collections, now_ns);
	if (stream->seen.sample && stream->sample.reason == REASON_NONE)
		kernel_pace_new_stack(&stream->pace, now_ns);
	return &stream->seen;
}

/*
 * The thread of a record. NULL if that is another one, or none that is followed.
 *   begins  whether a thread that is not followed yet is followed from this record on
 */
static struct kernel_follow *follow_of(struct kernel_stream *stream, const struct kernel_head *head, uint64_t thread,
				       bool begins)
{
	struct kernel_follow *follow;

	if (thread == 0)
		return NULL;
	follow = kernel_threads_find(&stream->threads, (pid_t)head->tid, thread, head->time_ns);
	if (!follow && begins && stream->facts.where_current != KERNEL_NO_CURRENT)
		follow = kernel_threads_found(&stream->threads, (pid_t)head->tid, thread, head->time_ns,
					      !kernel_limit_drops(&stream->limit, head->time_ns));
	if (!follow)
		return NULL;
	if (head->lost != follow->lost)
		time_line_lose(&follow->line, head->time_ns);
	follow->lost = head->lost;
	follow->taken = true;
	return follow;
}

/* Takes the stack of a record. NULL if there is none to hand on. */
static const struct observation *take_stack(struct kernel_stream *stream, const struct kernel_record *record)
{
	/* A thread without a stack has not begun yet. */
	struct kernel_follow *follow =
	    follow_of(stream, &record->head, record->thread, !(record->flags & KERNEL_NO_STACK));
	const bool of_clock = record->head.kind == KERNEL_CLOCK;
	bool collects;
	uint32_t slot;

	if (!follow || (follow->subject.pthread != 0 && follow->subject.pthread != record->fs_base))
		return NULL;
	if (kernel_limit_drops(&stream->limit, record->head.time_ns)) {
		stream->skipped += of_clock;
		return NULL;
	}
	kernel_sample_take(stream->sampler, record, &stream->sample);
	if (stream->sample.no_stack)
		return NULL;
	slot = time_slots_take(&stream->slots);
	if (slot == TIME_NONE) {
		stream->no_slots += of_clock;
		if (of_clock)
			time_line_lose(&follow->line, record->head.time_ns);
		return NULL;
	}
	if (stream->native)
		native_frames_take(stream->native, &stream->sample, &stream->inner);
	if (of_clock) {
		collects =
		    kernel_process_collects(stream->session->ruby.layout, record, stream->sample.cache.collecting);
		time_line_clock(&follow->line, record->head.time_ns, slot, collects ? SAMPLE_GC : SAMPLE_CPU);
	} else {
		time_slots_release(&stream->slots, follow->wait_slot);
		follow->wait_slot = slot;
		follow->wait_ns = record->head.time_ns;
	}
	return keep(stream, follow, record->head.time_ns, slot);
}

static void take_switch(struct kernel_stream *stream, const struct kernel_switch *record)
{
	struct kernel_follow *follow = follow_of(stream, &record->head, record->thread, record->head.kind == KERNEL_IN);
	enum sample_state state;
	int syscall;

	if (!follow)
		return;
	if (record->head.kind == KERNEL_IN) {
		time_line_in(&follow->line, record->head.time_ns, record->woken_ns,
			     (struct time_waker){.pid = (pid_t)record->waker_pid, .tid = (pid_t)record->waker_tid});
		return;
	}
	state = kernel_process_state(stream->session->ruby.layout, &follow->thread, record, &syscall);
	if (state == SAMPLE_STATES) {
		kernel_threads_end(&stream->threads, follow, record->head.time_ns);
		return;
	}
	/* The stack of another wait, whose record was lost, is not of this one. */
	if (follow->wait_ns != record->head.time_ns) {
		time_slots_release(&stream->slots, follow->wait_slot);
		follow->wait_slot = TIME_NONE;
	}
	time_line_out(&follow->line, record->head.time_ns, state, syscall, follow->wait_slot);
	follow->wait_slot = TIME_NONE;
	follow->outs[state == SAMPLE_RUNNABLE ? KERNEL_LEAVES_RUNNABLE : KERNEL_LEAVES_WAITING]++;
}

/* Ends the time line of a Ruby thread whose native thread has gone on with another one. */
static void end_of_tid(struct kernel_stream *stream, const struct kernel_head *head)
{
	struct kernel_follow *follow = kernel_threads_find(&stream->threads, (pid_t)head->tid, 0, head->time_ns);

	if (follow)
		kernel_threads_end(&stream->threads, follow, head->time_ns);
}

/*
 * Takes the next records. NULL if none of them is a stack: if there are no more, or if it is time for a flush.
 *   flush_ns  a flush is due when a record is not before that
 */
static const struct observation *take_records(struct kernel_stream *stream, uint64_t flush_ns)
{
	const struct observation *seen = NULL;
	const struct kernel_head *head;

	stream->behind_ns = 0;
	while (!seen && (head = kernel_ring_next(stream->ring))) {
		if (head->time_ns >= flush_ns) {
			stream->behind_ns = head->time_ns;
			return NULL;
		}
		stream->records++;
		switch (head->kind) {
		case KERNEL_CLOCK:
		case KERNEL_WAIT_STACK:
			*(head->kind == KERNEL_CLOCK ? &stream->clock_stacks : &stream->wait_stacks) += 1;
			watchdog_reads(READING_STACKS);
			seen = take_stack(stream, (const void *)head);
			watchdog_has_read(READING_STACKS);
			break;
		case KERNEL_OUT:
		case KERNEL_IN:
			take_switch(stream, (const void *)head);
			break;
		default:
			end_of_tid(stream, head);
			kernel_threads_want(&stream->threads, (pid_t)head->tid);
		}
		if (!seen)
			kernel_ring_done(stream->ring);
	}
	stream->holds = seen != NULL;
	return seen;
}

/* ---- flushes */

/*
 * Reads the stack of a thread that has waited for long, and whose stack was not copied. False if it does not wait any
 * more, or again.
 */
static bool read_long_wait(struct kernel_stream *stream, struct kernel_follow *follow)
{
	struct task_look look;

	kernel_threads_open(&stream->threads, follow);
	look = task_look(&follow->subject.task, NULL);
	if (!look.known || !look.asleep)
		return false;
	watchdog_reads(READING_STACKS);
	sampler_take(stream->sampler, &source_asleep, &follow->subject, true, &stream->sample);
	watchdog_has_read(READING_STACKS);
	if (stream->sample.reason != REASON_NONE || stream->sample.no_stack ||
	    (stream->native && stream->sample.native.registers.known == 0))
		return false;
	if (!task_sleeps_on(&follow->subject.task, &look))
		return false;
	if (stream->native)
		native_frames_take(stream->native, &stream->sample, &stream->inner);
	/* It is not known of the first wait when that began. */
	const uint64_t out_ns = kernel_maps_thread(&stream->options.maps, follow->subject.tid).out_ns;
	return out_ns == 0 || out_ns == follow->line.began_ns;
}

/* The next stack of a wait that is long and not over. NULL if there are no more. */
static const struct observation *next_long_wait(struct kernel_stream *stream)
{
	while (stream->at < stream->threads.count) {
		struct kernel_follow *follow = &stream->threads.of[stream->at++];
		uint32_t slot;

		if (follow->ended || !time_line_lacks_stack(&follow->line, stream->until_ns - LONG_NS) ||
		    !read_long_wait(stream, follow))
			continue;
		slot = time_slots_take(&stream->slots);
		if (slot == TIME_NONE)
			continue;
		time_line_found(&follow->line, slot);
		return keep(stream, follow, stream->until_ns, slot);
	}
	return NULL;
}

/*
 * Counts the stacks of the clock that were lost. A thread's next record says that records of it were lost; if there is
 * no such record yet, the thread's time line is marked here.
 */
static void count_lost(struct kernel_stream *stream)
{
	const struct kernel_counts counts = kernel_maps_counts(&stream->options.maps, stream->session->target->pid);
	const uint64_t all = counts.full + counts.unread + counts.dropped;

	stream->lost = counts.full + counts.unread + stream->no_slots;
	if (all == stream->marked)
		return;
	if (stream->behind_ns == 0)
		stream->marked = all;
	kernel_threads_lose(&stream->threads, stream->until_ns, stream->behind_ns == 0);
}

/* Lays and resolves all time lines, whose pieces are handed on next. */
static void begin_pieces(struct kernel_stream *stream)
{
	const double elapsed = (double)(stream->until_ns - stream->flushed_ns) / 1e9;
	const double seconds = elapsed > 1e-3 ? elapsed : 1e-3;

	count_lost(stream);
	kernel_threads_end_gone(&stream->threads, stream->until_ns);
	for (size_t i = 0; i < stream->threads.count; i++) {
		if (!stream->threads.of[i].ended)
			time_line_until(&stream->threads.of[i].line, stream->until_ns);
		time_line_resolve(&stream->threads.of[i].line);
	}
	kernel_threads_choose_waits(&stream->threads, stream->options.rate, seconds);
	stream->flushed_ns = stream->until_ns;
	stream->flush_ns = kernel_pace_next_flush(stream->flushed_ns, &stream->slots.random);
	stream->phase = PHASE_PIECES;
	stream->at = stream->piece = 0;
}

/* The next piece; the end of the round when there are no more. */
static const struct observation *next_piece(struct kernel_stream *stream)
{
	while (stream->at < stream->threads.count) {
		struct kernel_follow *follow = &stream->threads.of[stream->at];
		const struct time_piece *piece = &follow->line.pieces[stream->piece];

		if (stream->piece == follow->line.nr_pieces) {
			time_line_taken(&follow->line);
			stream->at++;
			stream->piece = 0;
			continue;
		}
		stream->piece++;
		/* A recording counts in microseconds. */
		if (since_origin(stream, piece->start_ns) / 1000 == since_origin(stream, piece->end_ns) / 1000)
			continue;
		begin_observation(stream, follow, piece->end_ns);
		stream->seen.weight_ns = stream->seen.time_ns - since_origin(stream, piece->start_ns);
		stream->seen.state = piece->state;
		stream->seen.syscall = piece->syscall;
		stream->seen.waker_pid = piece->waker.pid;
		stream->seen.waker_tid = piece->waker.tid;
		stream->seen.of_kept = !piece->lost;
		stream->seen.lost = piece->lost;
		stream->seen.kept = piece->slot;
		stream->seen.estimated = piece->estimated && piece->slot != TIME_NONE;
		stream->seen.missed = stream->seen.late = (uint32_t)(stream->lost - stream->told_lost);
		stream->told_lost = stream->lost;
		stream->seen.skipped = stream->skipped;
		stream->skipped = 0;
		return &stream->seen;
	}
	kernel_threads_sweep(&stream->threads);
	stream->phase = is_over(stream) && stream->behind_ns == 0 ? PHASE_OVER : PHASE_RECORDS;
	stream->seen = (struct observation){.end_of_round = true, .time_ns = since_origin(stream, stream->until_ns)};
	return &stream->seen;
}

static void begin_flush(struct kernel_stream *stream, uint64_t now_ns)
{
	if (now_ns - stream->cached_ns > CACHE_NS) {
		stream->cached_ns = now_ns;
		stack_cache_expire(stream->cache);
		old_objects_forget(stream->old);
		if (stream->native)
			native_frames_forget(stream->native);
	}
	kernel_pace_flushed(&stream->pace, stream->records, stream->clock_stacks, stream->wait_stacks,
			    (double)(now_ns - stream->flushed_ns) / 1e9);
	stream->records = stream->clock_stacks = stream->wait_stacks = 0;
	stream->until_ns = now_ns;
	stream->phase = PHASE_WAITS;
	stream->at = 0;
}

/* Up to when the next flush lays the time lines. After sampling has ended, no interrupt says what a thread does. */
static uint64_t flush_until(const struct kernel_stream *stream, uint64_t now_ns)
{
	if (stream->behind_ns != 0)
		return stream->flush_ns;
	/* Whoever writes a record now writes the time before that, so there may be one of a moment ago. */
	if (stream->follows)
		return now_ns - MARGIN_NS;
	return stream->left_ns > stream->flushed_ns ? stream->left_ns : stream->flushed_ns;
}

/* Waits for records. Before that, tells the program in the kernel whether stacks are to wake rbdump. */
static void wait_for_records(struct kernel_stream *stream, uint64_t now_ns)
{
	const enum kernel_wakes wakes = kernel_pace_wakes(&stream->pace, now_ns);

	if (stream->facts.wakes != wakes) {
		stream->facts.wakes = wakes;
		error_destroy(kernel_maps_change(&stream->options.maps, stream->session->target->pid, &stream->facts));
	}
	kernel_ring_wait(stream->ring, wakes != KERNEL_WAKES_NONE, stream->options.end_fd,
			 kernel_pace_wait_ms(&stream->pace, wakes, now_ns, stream->threads.wanted_ns));
	kernel_pace_found(&stream->pace, kernel_ring_bytes(stream->ring));
}

/* ---- the stream */

static struct error *begin(struct stream *this)
{
	struct kernel_stream *stream = of(this);
	struct error *error;

	kernel_limit_begin(&stream->limit, stream->options.max_cpu, stream->options.samplers);
	kernel_sample_begin(stream->sampler);
	/* The threads come after that: what they do since they were looked at is told then. */
	stream->facts.since_ns = monotonic_ns();
	error = kernel_maps_follow(&stream->options.maps, stream->session->target->pid, &stream->facts, stream->ring);
	stream->follows = !error;
	stream->flushed_ns = stream->cached_ns = monotonic_ns();
	stream->flush_ns = kernel_pace_next_flush(stream->flushed_ns, &stream->slots.random);
	kernel_threads_keep(&stream->threads, stream->flushed_ns);
	return error;
}

static const struct observation *next(struct stream *this, bool *timed_out)
{
	struct kernel_stream *stream = of(this);
	const struct observation *seen;

	*timed_out = false;
	for (int waits = 0;;) {
		uint64_t now_ns;

		switch (stream->phase) {
		case PHASE_OVER:
			return NULL;
		case PHASE_PIECES:
			return next_piece(stream);
		case PHASE_WAITS:
			seen = next_long_wait(stream);
			if (seen)
				return seen;
			begin_pieces(stream);
			continue;
		case PHASE_RECORDS:
			break;
		}
		/* What is left to take is then what is in the ring: else there might always be more. */
		if (is_over(stream))
			leave(stream);
		now_ns = monotonic_ns();
		kernel_limit_keep(&stream->limit, now_ns);
		seen = take_records(stream, stream->flush_ns);
		if (seen)
			return seen;
		/* If no thread has run since before the last flush, there are no new threads. */
		if (stream->behind_ns == 0 &&
		    (!stream->pace.idle || stream->records != 0 || stream->threads.wanted_ns != 0))
			kernel_threads_keep(&stream->threads, now_ns);
		if (stream->behind_ns != 0 || is_over(stream) || now_ns > stream->flush_ns + MARGIN_NS) {
			begin_flush(stream, flush_until(stream, now_ns));
			continue;
		}
		if (waits++ == (stream->pace.idle ? 1 : 5)) {
			*timed_out = true;
			return NULL;
		}
		wait_for_records(stream, now_ns);
	}
}

static void done(struct stream *this)
{
	struct kernel_stream *stream = of(this);

	if (stream->holds)
		kernel_ring_done(stream->ring);
	stream->holds = false;
}

static void keep_pace(struct stream *this)
{
	kernel_pace_ask(&of(this)->pace, monotonic_ns());
}

static void stop(struct stream *stream)
{
	of(stream)->stopped = true;
}

static bool end(struct stream *this)
{
	leave(of(this));
	kernel_limit_end(&of(this)->limit);
	return false;
}

static void destroy(struct stream *this)
{
	struct kernel_stream *stream = of(this);

	kernel_threads_clear(&stream->threads);
	leave(stream);
	kernel_ring_destroy(stream->ring);
	sampler_destroy(stream->sampler);
	stack_cache_destroy(stream->cache);
	old_objects_destroy(stream->old);
	native_frames_destroy(stream->native);
	sample_clear(&stream->sample);
	free(stream);
}

/* Makes what takes no help from the kernel. False if there is not enough memory. */
static bool make_parts(struct kernel_stream *stream, const struct session *session)
{
	const struct sampler_options how = {
	    .budget_us = 200, .on_torn = ON_TORN_REPORT, .native = stream->options.native};

	stream->sampler = sampler_create(session, &how);
	stream->cache = stack_cache_create();
	stream->old = old_objects_create(session->ruby.layout);
	time_slots_init(&stream->slots, monotonic_ns(), (uint64_t)(1e9 / stream->options.rate));
	if (!stream->sampler || !stream->cache || !stream->old || !sample_init(&stream->sample, session))
		return false;
	sampler_use_cache(stream->sampler, stream->cache, stream->old);
	return kernel_threads_init(&stream->threads, session, &stream->slots);
}

struct error *kernel_stream_create(const struct session *session, const struct kernel_stream_options *options,
				   struct stream **ret)
{
	static const struct stream_operations operations = {
	    .begin = begin,
	    .next = next,
	    .done = done,
	    .keep_pace = keep_pace,
	    .stop = stop,
	    .end = end,
	    .destroy = destroy,
	};
	struct kernel_stream *stream = calloc(1, sizeof(*stream));
	struct error *error = NULL;

	if (!stream)
		return error_no_memory();
	stream->stream.operations = &operations;
	stream->session = session;
	stream->options = *options;
	if (!make_parts(stream, session))
		error = error_no_memory();
	else
		error = kernel_process_facts(&session->ruby, stream->sample.copy, &stream->facts);
	if (!error)
		kernel_current_find(session, &stream->facts);
	if (!error && options->native != NATIVE_NONE)
		error = native_frames_create(session, options->kernel_frames, &stream->native);
	if (stream->native)
		native_frames_facts(stream->native, &stream->facts);
	kernel_pace_init(&stream->pace, options->rate, RING_BYTES, monotonic_ns());
	stream->facts.wakes = kernel_pace_wakes(&stream->pace, monotonic_ns());
	if (!error)
		error = kernel_ring_create(RING_BYTES, &stream->ring);
	stream->threads.maps = options->maps;
	if (error) {
		destroy(&stream->stream);
		return error;
	}
	*ret = &stream->stream;
	return NULL;
}
