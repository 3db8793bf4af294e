/*
 * The verb `rbdump experiment`: how far can a sampled stack of this process be trusted, and what does it cost?
 */
#ifndef RBDUMP_EXPERIMENT_H
#define RBDUMP_EXPERIMENT_H

#include <stdint.h>
#include <sys/types.h>

#include "error.h"
#include "sample/sampler.h"

struct experiment_options {
	pid_t pid;	   /* 0: start `command` */
	char **command;	   /* ends with NULL */
	double rate;	   /* samples a second */
	uint64_t samples;  /* of each mode; 0: until `duration_s` is over */
	double duration_s; /* 0: until there are `samples` */
	bool modes[SAMPLE_MODES];
	uint64_t seed;
	struct sampler_options sampler;
	const char *offsets;  /* layout file; NULL to look for one */
	bool nearest;	      /* as session_options has it */
	const char *oracle;   /* NULL: nothing is known of the target's calls */
	const char *progress; /* see progress.h; NULL: CPU time */
	const char *json;     /* NULL: no report in JSON; "-": standard output, in the place of the table */
	const char *torn_log; /* NULL: none */
};

/*
 * Runs it in a process of its own, which outlives a kill of this one by the moment that it takes to let the target go
 * on (see guard.h), and prints the report. Returns the exit status.
 */
int experiment_main(const struct experiment_options *options);

/* Reads the command line behind the word `experiment`, argv[0] being that word, and runs it. */
int experiment_command(int argc, char **argv);

#endif
