#include "heap/pause.h"

struct error *pause_too_long(const struct heap_options *options, const struct session *session, const char *how,
			     double ms)
{
	return error_create(EXIT_FAILED,
			    "process %d %s %.0f ms, which is more than %.0f ms; give --max-pause %.0f, or do not give "
			    "--stop",
			    session->target->pid, how, ms, options->max_pause_ms,
			    2 * (ms > options->max_pause_ms ? ms : options->max_pause_ms));
}
