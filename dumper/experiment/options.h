/*
 * The options of an experiment.
 */
#ifndef RBDUMP_EXPERIMENT_OPTIONS_H
#define RBDUMP_EXPERIMENT_OPTIONS_H

#include <stdint.h>
#include <sys/types.h>

#include "experiment/modes.h"
#include "sampling/sampler.h"

struct experiment_options {
	pid_t pid;	   /* the process to sample; 0: start and sample `command` */
	char **command;	   /* the command and its arguments; the array ends with NULL */
	double rate;	   /* samples per second */
	uint64_t samples;  /* the number of samples to take in each mode; 0: sample for the time `duration_s` */
	double duration_s; /* how long the experiment runs; 0: until each mode has `samples` samples */
	bool modes[MODES];
	bool kernel_is_optional; /* leave out MODE_KERNEL if the kernel does not allow this mode */
	uint64_t seed;
	struct sampler_options sampler;
	const char *offsets;  /* layout file; NULL: search for a layout */
	bool nearest;	      /* as in session_options */
	const char *oracle;   /* file with an oracle (oracle.h); NULL: no oracle */
	const char *progress; /* file with the target's progress (progress.h); NULL: measure CPU time */
	const char *json;     /* file for the JSON report; NULL: no JSON; "-": standard output, instead of the table */
	const char *torn_log; /* file for the torn log; NULL: no torn log */
};

#endif
