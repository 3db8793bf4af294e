/*
 * A capture: a process of rbdump that samples one target. rbdump record has one capture for each process that it
 * follows. A read of a target's memory might never return. Such a read blocks only the capture of that target. The
 * other captures continue. A capture is a worker (guard/worker.h): if rbdump is killed, the capture goes on until it
 * has detached from its target.
 *
 * A capture waits until its target is a Ruby, and then samples the target until the target ends. If the target calls
 * exec, the capture waits again until the target is a Ruby. A capture sends its records to rbdump through a pipe.
 */
#ifndef RBDUMP_CAPTURE_H
#define RBDUMP_CAPTURE_H

#include "recording/profile.h"
#include "sampling/sampler.h"

/* Memory that rbdump shares with all its captures. */
struct capture_control {
	_Atomic int stop;		     /* if set, captures must send the records that they have, and end */
	_Atomic uint32_t samplers;	     /* how many captures are sampling a Ruby now; they share the CPU limit */
	_Atomic uint32_t part;		     /* number of the part (file) that is being written; it never decreases */
	_Atomic uint64_t part_origins_ns[2]; /* `origin_ns` of the last two parts, indexed by part % 2 */
};

/*
 * Tells the captures that their records belong to part number `part` from now on.
 *   origin_ns  when the part began, in ns since `origin` of capture_options
 */
void capture_begin_part(struct capture_control *control, uint32_t part, uint64_t origin_ns);

struct capture_options {
	uint32_t process; /* the number of the process in the recording */
	pid_t pid;
	bool awaited;  /* the user gave the pid, without --children, so it is an error if the process is not a Ruby */
	bool descends; /* found with --children; the capture gives up if the process does not become a Ruby in time */
	/* With `descends`: how long the capture waits for the process to become a Ruby. `patience_ns` applies only if
	   the process is not a Ruby at all (`no_ruby` of struct error), and was not a Ruby before. Otherwise, WAIT_NS
	   in capture.c applies. */
	long patience_ns;
	bool launched; /* rbdump has started the process */
	double rate;
	double max_cpu; /* the share of one CPU that all captures together may use */
	const struct source *source;
	bool states[SAMPLE_STATES]; /* which thread states to record */
	const char *offsets;
	bool nearest; /* as in session_options */
	unsigned int time_limit_s;
	struct timespec origin; /* CLOCK_MONOTONIC: time 0 */
	struct capture_control *control;
};

enum capture_what {
	CAPTURE_RECORDS, /* records follow */
	CAPTURE_ERROR,	 /* the target cannot be recorded; the error message follows */
	CAPTURE_NO_RUBY, /* the last message if the target did not become a Ruby in time, so the capture gave up */
	CAPTURE_END, /* the last message in all other cases, for example if the target has ended or `stop` was set */
};

/* A message through the pipe: this struct, then `length` bytes. */
struct capture_message {
	enum capture_what what;
	uint32_t length;
	uint32_t part; /* the part that the records belong to */
	int status;    /* with CAPTURE_ERROR: the status of the error (enum exit_status) */
	bool is_ruby;  /* the target is a Ruby, or was one */
	/* With CAPTURE_NO_RUBY: the target is not a Ruby at all (`no_ruby` of struct error). If false, the target might
	   be a Ruby that hangs while it starts. */
	bool no_ruby;
	bool nearest;		      /* the target is read through the layout of another release */
	struct profile_counts counts; /* the counts of this process in `part` so far */
};

/* The maximum of `length` in struct capture_message. */
#define CAPTURE_LENGTH_MAX (64u << 20)

/*
 * Runs a capture. Call this function in a process that was forked for the capture. Returns the exit status for that
 * process.
 *   fd  the write end of the pipe
 */
int capture_run(const struct capture_options *options, int fd);

#endif
