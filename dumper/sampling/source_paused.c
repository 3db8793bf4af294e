/*
 * source_paused: see source.h.
 */
#include "base/clock.h"
#include "sampling/sampler_parts.h"
#include "sampling/stopped.h"
#include "session/windows.h"

/* The most tries of one sample. */
#define TRIES 8

/*
 * The kernel saves registers on the stack when a signal handler interrupts code: the places of the words around rip in
 * struct rt_sigframe (arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h). NATIVE_READ_MAX bytes are searched for
 * them.
 */
enum { SAVED_RSP = -1, SAVED_RIP = 0, SAVED_SELECTORS = 2 };
#define USER_CODE_SELECTOR 0x33u

/* The most steps out of a torn window (vm_push_frame has some thirty instructions); no step begins after STEP_US. */
#define STEPS_MAX 200
#define STEP_US	  100000.0

/*
 * The time for the thread between the first two tries. A sleep of rbdump takes longer than the thread needs to go on
 * and leave a torn window. So if rbdump is on another CPU, it once spins instead.
 */
#define BETWEEN_NS	 20000L
#define BETWEEN_AWAKE_NS 15000L

/* Steps a stopped thread out of its torn window. False if that was not possible. */
static bool step_out(struct sampler *sampler, struct tracee *tracee, struct sample *sample)
{
	struct timespec began;
	bool out = false;

	clock_gettime(CLOCK_MONOTONIC, &began);
	store_order_begin(sampler->store_order, sample->stop.window, sample->ec);
	for (int steps = 0; steps < STEPS_MAX && !out && sampler_us_since(&began) < STEP_US && tracee_step(tracee);
	     steps++) {
		sample->stop.steps++;
		store_order_step(sampler->store_order);
		out = !session_window(sampler->session, tracee->registers.rip);
	}
	if (out)
		store_order_end(sampler->store_order);
	sample->stop.step_us += sampler_us_since(&began);
	return out;
}

/*
 * Whether the thread is in other code than Ruby's. This can be a signal handler that has interrupted the thread in a
 * torn window (a profiler's, SIGPROF).
 */
static bool is_outside_ruby(const struct sampler *sampler, const struct tracee *tracee)
{
	return tracee->registers.rip < sampler->low || tracee->registers.rip >= sampler->high;
}

/* Reads as much of the native stack of a stopped thread as is needed. */
static struct native_read read_native(struct sampler *sampler, const struct tracee *tracee,
				      const struct subject *subject)
{
	const bool is_searched = session_has_windows(sampler->session) && is_outside_ruby(sampler, tracee);

	if (session_window(sampler->session, tracee->registers.rip))
		return (struct native_read){0};
	return sampler_read_native(sampler, &subject->extent, tracee->tid, tracee->registers.rsp,
				   is_searched ? NATIVE_READ_MAX : 0);
}

/*
 * The torn window in which a stopped thread is; NULL if it is in none. If a signal handler may have interrupted the
 * thread, the kernel has saved the registers on the stack on which the handler runs. Where on that stack is not known,
 * but a saved rip is recognized by the words beside it.
 *   length  how many bytes of the native stack were read
 */
static const struct layout_window *find_window(const struct sampler *sampler, const struct tracee *tracee,
					       size_t length, bool *interrupted)
{
	const struct session *session = sampler->session;
	const struct layout_window *window = session_window(session, tracee->registers.rip);
	const uint64_t *words = sampler->native;
	const size_t nr_words = (length < NATIVE_READ_MAX ? length : NATIVE_READ_MAX) / 8;

	*interrupted = false;
	if (window || !session_has_windows(session) || !is_outside_ruby(sampler, tracee))
		return window;
	for (size_t i = 1; i + SAVED_SELECTORS < nr_words; i++) {
		if ((words[i + SAVED_SELECTORS] & 0xffff) != USER_CODE_SELECTOR ||
		    words[i + SAVED_RSP] <= tracee->registers.rsp)
			continue;
		window = session_window(session, words[i + SAVED_RIP]);
		if (window) {
			*interrupted = true;
			return window;
		}
	}
	return NULL;
}

/*
 * Copies the stack of a stopped thread, and then finds out where it was stopped: the kernel gives the registers a
 * little later than the memory can be read. Returns whether there is a copy of a whole stack, or of a torn stack for
 * ON_TORN_REPORT.
 */
static bool copy_stopped(struct sampler *sampler, struct tracee *tracee, struct subject *subject, struct sample *sample)
{
	const enum on_torn on_torn = sampler->options.on_torn;
	bool covered = sampler_copy(subject, sample, COPY_ONCE) == COPY_COVERED, interrupted = false;
	struct native_read native;

	if (!stopped_read_registers(tracee, subject, sample))
		return false;
	native = read_native(sampler, tracee, subject);
	if (sampler->options.native != NATIVE_NONE) {
		const struct unwind_registers registers = sample_registers(&tracee->registers);

		sampler_note_native(sampler, &registers, &native, sample);
	}
	sample->stop.window = find_window(sampler, tracee, native.length, &interrupted);
	if (!sample->stop.window ||
	    (sampler->store_order && store_order_may_copy(sampler->store_order, sample->stop.window)))
		return covered;
	if (on_torn == ON_TORN_STEP && !interrupted && step_out(sampler, tracee, sample))
		return sampler_copy(subject, sample, COPY_ONCE) == COPY_COVERED;
	if (on_torn == ON_TORN_REPORT)
		sample->reason = REASON_WINDOW;
	else
		sample_reject(sample, REASON_WINDOW);
	return covered && on_torn == ON_TORN_REPORT;
}

/* The same as sample_try_again(), but spins instead of sleeping. */
static void try_again_awake(struct sample *sample)
{
	struct timespec began;

	sample->effort.retried[sample->reason]++;
	clock_gettime(CLOCK_MONOTONIC, &began);
	while (elapsed_ns(&began) < BETWEEN_AWAKE_NS)
		;
}

/* Whether a rejected sample is taken again. */
static bool takes_again(enum on_torn on_torn)
{
	return on_torn == ON_TORN_STEP || on_torn == ON_TORN_AGAIN;
}

static void take(struct sampler *sampler, struct subject *subject, bool seen, struct sample *sample)
{
	struct timespec began;

	placement_stay_off(&sampler->placement, subject->tid, &subject->task);
	for (unsigned int tries = 1;; tries++) {
		sample->effort.tries = tries;
		stopped_take(sampler, subject, seen && tries == 1, copy_stopped, sample);
		/* The duration of the first stop depends on what else runs, and does not predict that of the second. */
		if (tries == 1)
			clock_gettime(CLOCK_MONOTONIC, &began);
		if (sample->copied && sample->reason == REASON_NONE && sample->cache.result != CACHE_HIT)
			sampler_check(sampler, sample, COPY_CHECK_ALL);
		if (sample->reason == REASON_NONE || sample->gone || sample->stop.stuck || sample->no_stack ||
		    sample->reason == REASON_REFUSED || !takes_again(sampler->options.on_torn) || tries >= TRIES ||
		    (tries > 1 && sampler_us_since(&began) > 10 * (double)sampler->options.budget_us))
			break;
		if (tries == 1 && sampler->placement.off_tid == sample->tid)
			try_again_awake(sample);
		else
			/* On a busy machine it may take a while until the thread is given a CPU again. */
			sample_try_again(sample, BETWEEN_NS << (tries - 1));
	}
}

const struct source source_paused = {.name = "paused", .pauses = true, .take = take};
