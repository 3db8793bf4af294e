#include "heap/pause.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/priority.h"

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

struct error *pause_too_long(const struct heap_options *options, const struct session *session, const char *how,
			     double ms)
{
	const double enough = 2 * (ms > options->max_pause_ms ? ms : options->max_pause_ms);
	char advice[64] = "";

	if (enough <= HEAP_PAUSE_MS_MAX)
		snprintf(advice, sizeof(advice), "give --max-pause %.0f, or ", enough);
	return error_create(EXIT_FAILED, "process %d %s %.0f ms, which is more than %.0f ms; %sdo not give --stop",
			    session->target->pid, how, ms, options->max_pause_ms, advice);
}

struct error *pause_interrupted(const struct session *session)
{
	return error_create(EXIT_FAILED, "^C ended the reading of process %d", session->target->pid);
}
