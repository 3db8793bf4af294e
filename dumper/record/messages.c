#include "record/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"

/* Warn if a greater share of the samples has no complete stack, or is late. */
#define WARN_SHARE 0.01

/* If fewer samples were due, the share of late samples says little: rbdump itself has just started. */
#define DUE_MIN 100u

void messages_say(const char *message)
{
	fputs(isatty(STDERR_FILENO) ? "\r\033[Krbdump: " : "rbdump: ", stderr);
	text_print(message, stderr);
	fputc('\n', stderr);
}

void messages_fallback(const char *mode, const struct error *error)
{
	struct text text = {0};

	text_format(&text, "using mode %s, because %s", mode, error->message);
	if (text.data)
		messages_say(text.data);
	text_clear(&text);
}

void messages_progress(uint64_t ns, size_t processes, const struct profile_counts *counts)
{
	fprintf(stderr, "\r\033[Krbdump: %.0f s, %zu process%s, %" PRIu64 " samples, %" PRIu64 " not complete",
		(double)ns / 1e9, processes, processes == 1 ? "" : "es", counts->samples,
		counts->samples - counts->verdicts[VERDICT_COMPLETE]);
}

static void warn(const char *what, double share)
{
	if (share > WARN_SHARE)
		fprintf(stderr, "rbdump: warning: %.1f %% %s\n", 100.0 * share, what);
}

/* The share of the samples without a complete stack. */
static double incomplete_share(const struct profile_counts *counts)
{
	const uint64_t complete = counts->verdicts[VERDICT_COMPLETE];

	return counts->samples > 0 ? 1.0 - (double)complete / (double)counts->samples : 0;
}

void messages_result(const struct profile_counts *counts, double rate, double max_cpu_percent)
{
	const uint64_t due = profile_due(counts);

	fprintf(stderr, "%srbdump: samples %" PRIu64 ": %" PRIu64 " complete, %" PRIu64 " torn, %" PRIu64 " truncated",
		isatty(STDERR_FILENO) ? "\r\033[K" : "", counts->samples, counts->verdicts[VERDICT_COMPLETE],
		counts->verdicts[VERDICT_TORN], counts->verdicts[VERDICT_TRUNCATED]);
	if (counts->verdicts[VERDICT_UNREADABLE] > 0)
		fprintf(stderr, ", %" PRIu64 " unreadable", counts->verdicts[VERDICT_UNREADABLE]);
	fprintf(stderr, "; late %" PRIu64, counts->late);
	if (counts->missed > 0)
		fprintf(stderr, " (missed: %" PRIu64 ")", counts->missed);
	fprintf(stderr, " of %" PRIu64 " due\n", due);
	warn("of the samples are not complete; the recording marks these samples", incomplete_share(counts));
	if (due >= DUE_MIN)
		warn("of all due samples were late or missed: the machine is busy, or the rate (--rate) is too high",
		     profile_late_share(counts));
	if (counts->skipped > 0)
		fprintf(
		    stderr,
		    "rbdump: sampled %.0f times per second instead of %g, to take at most %g %% of a CPU (--max-cpu)\n",
		    rate * profile_share_taken(counts), rate, max_cpu_percent);
}
