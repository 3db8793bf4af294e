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
	/*
	 * The target's status from waitpid(). NULL if rbdump did not start the target, or if the target has not ended.
	 */
	const int *target_status;
	char *no_kernel; /* the reason why MODE_KERNEL was left out; NULL if this mode was not left out */
	json_t *where; /* from torn_log_close(): places where threads of rejected or impossible samples were stopped */
};

/*
 * Checks whether rbdump can write the report and the torn log. Call this function before the experiment begins, and
 * before the target's command is started. Does not change existing files, and leaves no new file behind. If a file
 * cannot be written, fails with an error that names the file.
 */
struct error *report_begin(const struct experiment_options *options);

/*
 * Writes what the options ask for: the table, the JSON report, or both. Fails if the report cannot be written.
 *   tallies  one tally for each mode; the tallies of modes that were not chosen are empty
 */
struct error *report_write(const struct experiment_options *options, const struct session *session,
			   const struct tally *tallies, const struct report_facts *facts);

#endif
