/*
 * The options of a recording.
 */
#ifndef RBDUMP_RECORD_OPTIONS_H
#define RBDUMP_RECORD_OPTIONS_H

#include "report/report.h"
#include "sampling/sampler_options.h"
#include "sampling/source.h"

struct record_options {
	const pid_t *pids; /* the processes to record, if there is no command */
	size_t nr_pids;
	char *const *command; /* the command to start and record; NULL: there is no command */
	double rate;
	double max_cpu_percent; /* the limit on the CPU time for sampling, in percent of one CPU */
	/* How long to record. 0: until all processes have ended or, if `all` is set, until a signal ends the recording. */
	double duration_s;
	/* How long to write to each file; 0: no limit. SIGHUP can begin a new file earlier (see signals_take()). */
	double rotate_s;
	const struct source *source; /* NULL: use the best source that is allowed (mode auto) */
	/*
	 * `native`: which native frames to record. NATIVE_INNERMOST: those inside of the innermost frame of Ruby
	 * (sampling/native_frames.h). NATIVE_WHOLE: all of them (sampling/mixed_stack.h). `kernel_frames`: also record
	 * the kernel's functions. Native frames are not possible in the mode `unpaused`; NATIVE_WHOLE needs the mode
	 * `paused`, and `kernel_frames` the mode `kernel`.
	 */
	enum native_copies native;
	bool kernel_frames;
	bool children;
	/* Record all Ruby processes that rbdump can see on this machine. In this case, there are no pids and no
	   command. */
	bool all;
	/* If `all` is set, `cgroup` and `of_user` limit which processes are recorded. `cgroup`: record only processes
	   in or below this cgroup (owner_cgroup_is_below()). NULL: any cgroup. */
	const char *cgroup;
	bool of_user; /* record only processes of the user `user` */
	uid_t user;
	bool states[SAMPLE_STATES]; /* which thread states to record; if all are false, every state is recorded */
	const char *offsets;
	bool nearest; /* as in session_options */
	unsigned int time_limit_s;
	bool raw;		      /* write the recording itself, not a report in the format `report.format` */
	bool named;		      /* the user has named the output file */
	struct report_options report; /* report.output is the name of the output file, even if `raw` is set */
};

/* Returns whether rbdump samples a process with source_paused if the process cannot be sampled in the kernel. */
static inline bool may_fall_back(const struct record_options *options)
{
	return !options->source && !options->kernel_frames;
}

#endif
