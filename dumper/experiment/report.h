/*
 * What an experiment found: a table for people, JSON (schema 1, doc/json.md) for programs.
 */
#ifndef RBDUMP_REPORT_H
#define RBDUMP_REPORT_H

#include "experiment/experiment.h"
#include "experiment/tally.h"
#include "session/session.h"

/* What belongs to no mode. */
struct report_facts {
	const char *ended;	   /* "samples", "duration", "interrupted", "target-exited", "target-execed" */
	const char *progress_unit; /* see progress.h */
	double duration_s;
	uint64_t blocks;
	bool realtime;		  /* whether the thread that took the samples went before others */
	const int *target_status; /* of a target that was started and has ended, as waitpid() gives it; else NULL */
	json_t *where; /* where the threads of rejected and impossible samples were stopped; see torn_log.h */
};

/*
 * Looks whether the report, and the torn log, can be written to where they were asked for: before the experiment, and
 * before a command is started for it. Leaves no file behind that was not there.
 */
struct error *report_begin(const struct experiment_options *options);

/*
 * Writes the table to standard output, and JSON where it was asked for.
 *   tallies  one for each of SAMPLE_MODES; those of modes that were not asked for are empty
 */
struct error *report_write(const struct experiment_options *options, const struct session *session,
			   const struct tally *tallies, const struct report_facts *facts);

#endif
