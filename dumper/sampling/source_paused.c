/*
 * source_paused: see source.h.
 */
#include <sys/uio.h>

#include "base/clock.h"
#include "sampling/sampler_parts.h"
#include "sampling/stopped.h"
#include "session/windows.h"

/* The most tries of one sample. */
#define TRIES 8

/*
 * How much of a native stack is searched for the registers that the kernel saves there when a signal handler interrupts
 * code; and the places of the words around rip in struct rt_sigframe (arch/x86/include/asm/sigframe.h,
 * uapi/asm/sigcontext.h).
 */
#define HANDLER_BYTES 16384u
enum { SAVED_RSP = -1, SAVED_RIP = 0, SAVED_SELECTORS = 2 };
#define USER_CODE_SELECTOR 0x33u

/* The most steps out of a torn window (vm_push_frame has some thirty instructions); no step begins after STEP_US. */
#define STEPS_MAX 200
#define STEP_US	  100000.0

/*
 * The time for the thread between the first two tries. A sleep of rbdump takes longer than the thread needs to go on and
 * leave a torn window. So if rbdump is on another CPU, it once spins instead.
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
 * The torn window in which a stopped thread is; NULL if it is in none. A signal handler may have interrupted the thread in
 * a window (a profiler's, SIGPROF). The kernel has then saved the registers on the stack on which the handler runs. Where
 * on that stack is not known, but a saved rip is recognized by the words beside it.
 */
static const struct layout_window *find_window(const struct sampler *sampler, const struct tracee *tracee,
					       bool *interrupted)
{
	const struct session *session = sampler->session;
	const struct layout_window *window = session_window(session, tracee->registers.rip);
	uint64_t words[HANDLER_BYTES / 8];
	struct iovec local = {words, sizeof(words)}, remote[] = {{(void *)tracee->registers.rsp, sizeof(words)}};
	ssize_t length;

	*interrupted = false;
	if (window || !session_has_windows(session) ||
	    (tracee->registers.rip >= sampler->low && tracee->registers.rip < sampler->high))
		return window;
	length = process_vm_readv(tracee->tid, &local, 1, remote, 1, 0);
	for (ssize_t i = 1; i < length / 8 - SAVED_SELECTORS; i++) {
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
 * Copies the stack of a stopped thread, and then finds out where it was stopped: the kernel gives the registers a little
 * later than the memory can be read. Returns whether there is a copy of a whole stack, or of a torn stack for
 * ON_TORN_REPORT.
 */
static bool copy_stopped(struct sampler *sampler, struct tracee *tracee, struct subject *subject, struct sample *sample)
{
	const enum on_torn on_torn = sampler->options.on_torn;
	bool covered = sampler_copy(subject, sample, COPY_ONCE) == COPY_COVERED, interrupted = false;

	if (!stopped_read_registers(tracee, subject, sample))
		return false;
	sample->stop.window = find_window(sampler, tracee, &interrupted);
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
