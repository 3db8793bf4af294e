/*
 * A capture is a process of rbdump that samples one target. In a recording, there is one capture for each process that
 * is followed. A read of a target's memory might never return. Such a read blocks only the capture of that target. The
 * other captures continue. A capture is a worker (guard/worker.h). If rbdump is killed, the capture ends only after it
 * has detached from its target.
 *
 * A capture waits until its target is a Ruby process, and then samples the target until the target ends. If the target
 * calls exec, the capture waits again until the target is a Ruby process. A capture sends its records to rbdump through
 * a pipe.
 */
#ifndef RBDUMP_CAPTURE_H
#define RBDUMP_CAPTURE_H

#include "kernel/maps.h"
#include "recording/profile.h"
#include "sampling/sampler.h"

/* Memory that rbdump shares with all its captures. */
struct capture_control {
	_Atomic int stop;		     /* if set, each capture must send the records that it has, and then end */
	_Atomic uint32_t samplers;	     /* number of captures that are sampling now and share the CPU limit */
	_Atomic uint32_t part;		     /* number of the part (file) that is being written; it never decreases */
	_Atomic uint64_t part_origins_ns[2]; /* `origin_ns` (see below) of the last two parts; the index is part % 2 */
};

/*
 * Tells the captures that part number `part` has begun, and that all later records belong to this part.
 *   origin_ns  when the part began, in ns since `origin` of capture_options
 */
void capture_begin_part(struct capture_control *control, uint32_t part, uint64_t origin_ns);

struct capture_options {
	uint32_t process; /* the number of the process in the recording */
	pid_t pid;
	/* The user gave the pid without --children, so it is an error if the process does not run Ruby. */
	bool awaited;
	/* rbdump found the process because of --children or --all. If the process does not run Ruby in time, the
	   capture gives up. */
	bool descends;
	/*
	 * If `descends` is true: how long the capture waits for the process to become a Ruby process. `patience_ns`
	 * applies only if the process does not run Ruby at all (`no_ruby` of struct error), and did not run Ruby
	 * before. Otherwise, WAIT_NS in capture.c applies. But if rbdump has no permission to read the process, and the
	 * process did not run Ruby before, the capture does not wait.
	 */
	long patience_ns;
	bool launched; /* rbdump has started the process */
	double rate;
	double max_cpu; /* the share of one CPU that all captures together may use */
	const struct source *source;
	/*
	 * The source that is used if `source` cannot sample the target. In this case, the recording notes which mode
	 * was used for this process. If `fallback` is NULL, a target that `source` cannot sample is not recorded.
	 */
	const struct source *fallback;
	/* If `source->in_kernel` is set: the maps of the BPF program that samples all targets. */
	struct kernel_maps maps;
	bool states[SAMPLE_STATES]; /* which thread states to record */
	const char *offsets;
	bool nearest; /* as in session_options */
	unsigned int time_limit_s;
	struct timespec origin; /* CLOCK_MONOTONIC: time 0 */
	struct capture_control *control;
	/* The read end of a pipe; used only if `source->in_kernel` is set. The write end of the pipe is closed after
	   `control->stop` has been set. */
	int end_fd;
	enum native_copies native; /* these two: as in struct record_options */
	bool kernel_frames;
};

enum capture_what {
	CAPTURE_RECORDS, /* the records that the capture has; with a new part, there may be none */
	CAPTURE_ERROR,	 /* the target cannot be recorded, at least for now; the text of the error follows */
	CAPTURE_NO_RUBY, /* the capture ends now, because the target did not run Ruby in time; nothing follows */
	CAPTURE_END,	 /* the capture ends for another reason (such as the target's end); nothing follows */
};

/* A message through the pipe: this struct, then `length` bytes. */
struct capture_message {
	enum capture_what what;
	uint32_t length;
	uint32_t part; /* the part that the records belong to */
	int status;    /* with CAPTURE_ERROR: the status of the error (enum exit_status) */
	bool is_ruby;  /* the target is or was a Ruby process */
	/* With CAPTURE_NO_RUBY: true if the target does not run Ruby at all (`no_ruby` of struct error). If false, the
	   target might be a Ruby process that hangs while it starts. */
	bool no_ruby;
	bool nearest;		      /* the target is read with the layout of another Ruby release */
	struct profile_counts counts; /* the sample counts of the target in `part` so far */
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
