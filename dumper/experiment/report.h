/*
 * The report of an experiment: a table for people, and JSON (schema 1, doc/json.md) for programs.
 */
#ifndef RBDUMP_EXPERIMENT_REPORT_H
#define RBDUMP_EXPERIMENT_REPORT_H

#include "base/error.h"
#include "experiment/options.h"
#include "experiment/tally.h"
#include "session/session.h"

/* Facts about the whole experiment. */
struct report_facts {
	/* Why the experiment ended: "samples", "duration", "interrupted", "target-exited" or "target-execed". */
	const char *ended;
	const char *progress_unit; /* from progress_unit() */
	double duration_s;
	uint64_t blocks;
	bool realtime; /* whether the sampling thread had real-time priority */
	/* The status from waitpid(). NULL if rbdump did not start the target, or if the target has not ended. */
	const int *target_status;
	char *no_kernel; /* why MODE_KERNEL was left out; NULL if it was not */
	json_t *where;	 /* from torn_log_close(): where the threads of rejected or impossible samples were stopped */
};

/*
 * Checks whether the report and the torn log can be written. Call this function before the experiment begins, and
 * before the target's command is started. Does not change existing files, and leaves no new file behind. If a file
 * cannot be written, fails with an error that names the file.
 */
struct error *report_begin(const struct experiment_options *options);

/*
 * Writes the table, the JSON report, or both, as the options say. Fails if the report cannot be written.
 *   tallies  one tally for each mode; the tallies of modes that were not chosen are empty
 */
struct error *report_write(const struct experiment_options *options, const struct session *session,
			   const struct tally *tallies, const struct report_facts *facts);

#endif
