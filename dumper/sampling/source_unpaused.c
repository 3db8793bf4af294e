/*
 * source_unpaused, source_double and source_asleep: see source.h.
 */
#include "base/clock.h"
#include "sampling/sampler_parts.h"

/* The time for the thread between two tries. */
#define BETWEEN_NS 20000L

/* How often a running thread is read remotely before rbdump goes to its CPU. */
#define REMOTE_READS 3

/*
 * Reads a running thread from another CPU. The stack is accepted if it equals, word for word, a stack in the cache,
 * which was seen since the last collection. A torn read would have to equal some third valid stack word for word. If
 * only a stale entry matches, the stack is checked, and the caller must check that it still decodes to the same frames
 * (`remote`), because the objects to which its words lead may have been replaced since.
 *
 * A stack that is not in the cache is read again, and the thread has gone on by then. So new stacks are seen less often
 * than they occur. Hence remote reads are used only while hardly any stack is new (sampling/remote_reads.h), as judged
 * by the samples that are taken without a remote read.
 */
static bool read_remotely(struct sampler *sampler, struct subject *subject, struct sample *sample)
{
	placement_stay_off(&sampler->placement, subject->tid, &subject->task);
	/*
	 * If the target does nothing but call methods, one read in ten is a mixture of two stacks. A move to the
	 * thread's CPU costs the target much more than another try.
	 */
	while (sample->effort.tries < REMOTE_READS) {
		enum cache_result cached = CACHE_UNKNOWN;

		sample->effort.tries++;
		if (sampler_copy(subject, sample, COPY_ONCE) == COPY_COVERED)
			cached = sampler_look_up(sampler, sample, FINGERPRINT_ALL, false);
		if (cached == CACHE_STALE) {
			sampler_copy_objects(sampler, sample);
			if (sample->reason == REASON_NONE)
				sampler_check(sampler, sample, COPY_CHECK_ALL);
		}
		if (cached >= CACHE_STALE && sample->reason == REASON_NONE) {
			sample->effort.in_budget = sample->cache.remote = true;
			return true;
		}
	}
	return false;
}

/*
 * Notes whether a stack that was taken on the thread's CPU was in the cache.
 *   in_vain  whether a remote read of this sample failed before
 */
static void note_cached(struct sampler *sampler, const struct sample *sample, bool in_vain)
{
	const uint64_t times_full = stack_cache_times_full(sampler->cache);

	/* If the collector is at work, or the cache was emptied, the result says nothing about the program. */
	if (sample->cache.result == CACHE_UNKNOWN)
		return;
	if (times_full != sampler->times_full)
		remote_reads_forget(&sampler->remote_reads);
	sampler->times_full = times_full;
	remote_reads_taken(&sampler->remote_reads, sample->reason == REASON_NONE && sample->cache.result >= CACHE_STALE,
			   in_vain);
}

/* Moves to the CPU from which the source reads. */
static void take_place(struct sampler *sampler, struct subject *subject, struct sample *sample, bool on_its_cpu)
{
	if (on_its_cpu)
		sample->effort.off_cpu = !placement_follow(&sampler->placement, &subject->task);
	else
		placement_avoid(&sampler->placement, subject->tid, &subject->task);
}

/* Checks a stack that was copied twice. */
static void check_in_time(struct sampler *sampler, struct sample *sample, const struct timespec *began)
{
	const bool is_right = sampler_look_up(sampler, sample, FINGERPRINT_ALL, true) == CACHE_HIT;

	/* The innermost frames show nearly all errors, and much sooner. */
	if (!is_right) {
		sampler_copy_frames(sampler, sample, COPY_CHECK_INNERMOST);
		sampler_check(sampler, sample, COPY_CHECK_INNERMOST);
	}
	sample->effort.in_budget = sampler_us_since(began) <= (double)sampler->options.budget_us;
	if (!is_right && sample->reason == REASON_NONE)
		sampler_copy_objects(sampler, sample);
	if (!is_right && sample->reason == REASON_NONE)
		sampler_check(sampler, sample, COPY_CHECK_ALL);
}

static void take(struct sampler *sampler, struct subject *subject, struct sample *sample, bool on_its_cpu)
{
	struct timespec began;
	bool remotely;

	clock_gettime(CLOCK_MONOTONIC, &began);
	remotely = on_its_cpu && sampler->cache && remote_reads_next(&sampler->remote_reads, ns_of(&began));
	if (remotely && read_remotely(sampler, subject, sample)) {
		remote_reads_found(&sampler->remote_reads);
		return;
	}
	/* The move to the CPU does not count as a try. */
	take_place(sampler, subject, sample, on_its_cpu);
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (;;) {
		sample->effort.tries++;
		if (sampler_copy(subject, sample, COPY_TWICE) == COPY_COVERED)
			check_in_time(sampler, sample, &began);
		if (sample->reason == REASON_NONE || sample->no_stack ||
		    sampler_us_since(&began) >= (double)sampler->options.budget_us)
			break;
		if (on_its_cpu)
			sample_try_again(sample, BETWEEN_NS);
		else
			sample->effort.retried[sample->reason]++;
		take_place(sampler, subject, sample, on_its_cpu);
	}
	if (on_its_cpu && sampler->cache)
		note_cached(sampler, sample, remotely);
	sample->gone = sample->reason != REASON_NONE && task_has_ended(&subject->task);
}

static void take_on_its_cpu(struct sampler *sampler, struct subject *subject, bool seen, struct sample *sample)
{
	(void)seen;
	take(sampler, subject, sample, true);
}

static void take_from_elsewhere(struct sampler *sampler, struct subject *subject, bool seen, struct sample *sample)
{
	(void)seen;
	take(sampler, subject, sample, false);
}

/*
 * Copies the native stack of a sleeping thread. Only two registers are known; none if the thread does not sleep any
 * more.
 */
static void copy_native_asleep(struct sampler *sampler, const struct subject *subject, struct sample *sample)
{
	struct unwind_registers registers = {.known = 1u << UNWIND_RSP};
	uint64_t *const sp = &registers.of[UNWIND_RSP];
	struct native_read read;

	if (!task_place(&subject->task, &registers.ip, sp))
		return;
	read = sampler_read_native(sampler, &subject->extent, subject->tid, *sp, 0);
	sampler_note_native(sampler, &registers, &read, sample);
}

static void take_asleep(struct sampler *sampler, struct subject *subject, bool seen, struct sample *sample)
{
	bool covered;

	(void)seen;
	sample->effort.tries = 1;
	covered = sampler_copy(subject, sample, COPY_ONCE) == COPY_COVERED;
	if (covered && sampler->options.native != NATIVE_NONE)
		copy_native_asleep(sampler, subject, sample);
	if (covered && sampler_look_up(sampler, sample, FINGERPRINT_ALL, true) != CACHE_HIT) {
		sampler_copy_held(sampler, sample);
		sampler_check(sampler, sample, COPY_CHECK_ALL);
	}
}

const struct source source_unpaused = {.name = "unpaused", .retries = true, .take = take_on_its_cpu};
const struct source source_double = {.name = "unpaused-double", .retries = true, .take = take_from_elsewhere};
const struct source source_asleep = {.name = "asleep", .take = take_asleep};
