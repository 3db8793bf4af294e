/*
 * The process that samples one target: rbdump record has one for each process that it follows. What happens to it, be
 * it that its target's memory does not answer, happens to no other; and as a worker (supervise/guard.h) it outlives a
 * kill of rbdump for as long as it takes to let the target go.
 *
 * It waits until its target is a Ruby, samples it until it ends, follows it into another program, and sends what it
 * records to rbdump through a pipe.
 */
#ifndef RBDUMP_CAPTURE_PROCESS_H
#define RBDUMP_CAPTURE_PROCESS_H

#include "recording/profile.h"
#include "sample/sampler.h"

/* What rbdump and its captures share: memory that all have mapped. */
struct capture_control {
	_Atomic int stop;		     /* they are to end, with what there is */
	_Atomic uint32_t samplers;	     /* how many captures sample a Ruby: they share what CPU time is allowed */
	_Atomic uint32_t part;		     /* which file of the recording is written; it goes up */
	_Atomic uint64_t part_origins_ns[2]; /* and when it was begun, since `origin`: of an even part, of an odd one */
};

/* Says that another file is written from now on. */
void capture_begin_part(struct capture_control *control, uint32_t part, uint64_t origin_ns);

struct capture_options {
	uint32_t process; /* its number in the recording */
	pid_t pid;
	bool awaited;	  /* it was asked for by its number: if it is no Ruby, that is an error */
	bool descends;	  /* it was found below another one: if it is no Ruby, no one waits for it to become one */
	long patience_ns; /* then: for how long it is looked whether it is one */
	bool launched;	  /* rbdump has started it */
	double rate;
	double max_cpu; /* the share of one CPU that all captures together may take */
	enum sample_mode mode;
	bool states[PROFILE_STATES]; /* what is recorded */
	const char *offsets;
	bool nearest; /* as session_options has it */
	unsigned int time_limit_s;
	struct timespec origin; /* CLOCK_MONOTONIC: time 0 */
	struct capture_control *control;
};

enum capture_what {
	CAPTURE_RECORDS, /* what follows are records */
	CAPTURE_ERROR,	 /* it cannot be recorded: what follows is a sentence */
	CAPTURE_NO_RUBY, /* it is no Ruby, or not any more, and not waited for: nothing follows, ever */
	CAPTURE_END,	 /* its target has ended, or rbdump wants it: nothing follows, ever */
};

/* What comes through the pipe: this, and `length` bytes. */
struct capture_message {
	enum capture_what what;
	uint32_t length;
	uint32_t part; /* the file that the records are for */
	int status;    /* of CAPTURE_ERROR: enum exit_status */
	bool is_ruby;  /* by now it is, or was */
	bool no_ruby;  /* of CAPTURE_NO_RUBY: nothing that it runs is one; else it may be about to start */
	bool nearest;  /* it was read through the layout of another release */
	struct profile_counts counts; /* in that file, so far */
};

/* The longest that one is. */
#define CAPTURE_LENGTH_MAX (64u << 20)

/*
 * Runs in a process that was forked for it, and returns its exit status.
 *   fd  the pipe's end to write to
 */
int capture_run(const struct capture_options *options, int fd);

#endif
