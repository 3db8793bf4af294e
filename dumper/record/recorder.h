/*
 * The state of a recording in progress, shared by record.c and discover.c.
 */
#ifndef RBDUMP_RECORDER_H
#define RBDUMP_RECORDER_H

#include "kernel/programs.h"
#include "record/candidates.h"
#include "record/execs.h"
#include "record/followed.h"
#include "record/options.h"
#include "record/output.h"
#include "target/descendants.h"

struct recorder {
	const struct record_options *options;
	struct capture_control *control;
	/* The next four members are CLOCK_MONOTONIC times. */
	struct timespec origin;	      /* when the recording began */
	struct timespec part_began;   /* when the current part began */
	struct timespec before_began; /* when the previous part began */
	struct timespec sampled;      /* when the first Ruby process was found; before that, equal to `origin` */

	const struct source *source; /* how processes are sampled; a capture may use its `fallback` instead */
	struct error *refused;	     /* mode auto: why rbdump cannot sample in the kernel; NULL in all other cases */
	struct kernel_programs
	    *programs;	/* the BPF program that samples all processes; NULL if rbdump does not sample in the kernel */
	int end_fds[2]; /* a pipe whose write end is closed when the captures must end; used only with `programs` */
	struct output *output;
	struct followed_list followed;
	struct profile_counts counts; /* the sample counts of processes whose captures have ended */
	bool any_ruby;
	bool told_of_look;	 /* the user was told why rbdump could not begin to look at a candidate */
	enum exit_status status; /* the highest exit status that a failed capture has caused */

	pid_t launched; /* the pid of the command; 0: there is no command */
	bool has_status;
	int launched_status;
	struct timespec read, discovered, forgotten, flushed, shown, ending;
	struct descendants_cache processes;
	struct candidate_list candidates;
	struct execs *execs; /* NULL: rbdump does not receive reports of execs */
};

/*
 * Starts a capture for each process that the user named. If the user gave a command, starts the command and its
 * capture.
 */
struct error *recorder_begin(struct recorder *recorder);

/*
 * With --children or --all, looks for new candidates (candidates.h), and starts captures for the candidates that are
 * due for a look. Does both at most once every 0.1 s.
 */
struct error *recorder_discover(struct recorder *recorder);

#endif
