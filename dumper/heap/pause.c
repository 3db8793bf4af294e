#include "heap/pause.h"

#include <stdio.h>

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
