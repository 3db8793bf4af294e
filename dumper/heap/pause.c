#include "heap/pause.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/priority.h"
#include "heap/progress.h"
#include "session/snapshot.h"

/* The second reading. */
struct held {
	const struct pause_work *work;
	double max_ms;
	struct error *error;
};

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return ns_of(&now);
}

void pause_estimate_begin(struct pause_estimate *ret)
{
	*ret = (struct pause_estimate){.began_ns = monotonic_ns(), .began_cpu_ns = cpu_ns()};
}

/* Whether the thread that stops the process will have a real-time priority. */
static bool is_hurry_permitted(void)
{
	const bool raised = priority_raise(PRIORITY_SAMPLES);

	if (raised)
		priority_lower();
	return raised;
}

double pause_estimate_end(const struct pause_estimate *estimate)
{
	const uint64_t elapsed = monotonic_ns() - estimate->began_ns, cpu = cpu_ns() - estimate->began_cpu_ns;

	return (double)(cpu < elapsed && is_hurry_permitted() ? cpu : elapsed) / 1e6;
}

static struct error *too_long(const struct heap_options *options, const struct session *session, const char *how,
			      double ms)
{
	const double enough = 2 * (ms > options->max_pause_ms ? ms : options->max_pause_ms);
	char advice[64] = "";

	if (enough <= HEAP_PAUSE_MS_MAX)
		snprintf(advice, sizeof(advice), "give --max-pause %.0f, or ", enough);
	return error_create(EXIT_FAILED,
			    "process %d %s %.0f ms, which is more than the permitted %.0f ms; %somit --stop",
			    session->target->pid, how, ms, options->max_pause_ms, advice);
}

static struct error *interrupted(const struct session *session)
{
	return error_create(EXIT_FAILED, "^C ended the reading of process %d", session->target->pid);
}

static void read_held(void *context)
{
	struct held *held = context;

	held->error = held->work->read(held->work->context, false, monotonic_ns() + (uint64_t)(held->max_ms * 1e6));
}

struct error *pause_read(const struct heap_options *options, struct session *session, const struct pause_work *work,
			 double *ms)
{
	struct held held = {.work = work, .max_ms = options->max_pause_ms};
	struct pause_estimate estimate;
	struct pauses pauses = {0};
	struct error *error;
	double expected_ms;

	pause_estimate_begin(&estimate);
	error = work->read(work->context, true, 0);
	expected_ms = pause_estimate_end(&estimate);
	if (error)
		return error;
	if (progress_was_interrupted())
		return interrupted(session);
	if (expected_ms > options->max_pause_ms)
		return too_long(options, session, "would be stopped for about", expected_ms);
	error = snapshot_held(session->target, read_held, &held, &pauses);
	if (!error)
		error = held.error;
	if (error)
		return error;
	if (progress_was_interrupted())
		return interrupted(session);
	*ms = pauses.us / 1e3;
	return work->is_late(work->context) ? too_long(options, session, "was stopped for", *ms) : NULL;
}
