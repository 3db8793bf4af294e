/*
 * The verb `rbdump record`: what a Ruby is spending its time on, and what it waits for, many times a second.
 *
 * rbdump itself starts what it is to start, finds the processes to follow, has each sampled by a process of its own
 * (capture.h), and writes what they send.
 */
#ifndef RBDUMP_RECORD_H
#define RBDUMP_RECORD_H

#include "error.h"
#include "report/report.h"
#include "sample/sampler.h"

struct record_options {
	const pid_t *pids; /* or a command */
	size_t nr_pids;
	char *const *command; /* NULL if there are pids */
	double rate;
	double max_cpu_percent; /* of one CPU, that sampling may take */
	double duration_s;	/* 0: until all have ended */
	double rotate_s;	/* 0: one file, but for SIGHUP */
	enum sample_mode mode;
	bool children;
	bool states[PROFILE_STATES]; /* what is recorded; none set: all */
	const char *offsets;
	bool nearest; /* as session_options has it */
	unsigned int time_limit_s;
	bool raw;		      /* the recording itself; else `report.format` */
	bool named;		      /* the user has named the file that it goes to */
	struct report_options report; /* with where to write it */
};

/* Records, writes, and returns the exit status: that of a command, if there is one. */
int record_main(const struct record_options *options);

/* The command line: argv[0] is "record". Returns the exit status. */
int record_command(int argc, char **argv);

#endif
