/*
 * The counts of one mode of an experiment.
 */
#ifndef RBDUMP_TALLY_H
#define RBDUMP_TALLY_H

#include <jansson.h>

#include "experiment/block_sampler.h"
#include "experiment/evaluation.h"
#include "experiment/oracle.h"
#include "experiment/statistics.h"
#include "trace/trace.h"

struct tally {
	uint64_t samples, accepted, late;
	/*
	 * The number of accepted samples for which rbdump copied the stack and checked the innermost frames within the
	 * time budget. The check of the other frames may end later.
	 */
	uint64_t in_budget;
	uint64_t dropped; /* samples whose thread had ended or had no stack yet; `samples` does not count them */
	uint64_t off_cpu; /* samples of mode `unpaused` for which rbdump could not move to the CPU of the thread */
	json_t *rejected; /* rejected samples, counted per reason */
	json_t *soft;	  /* accepted samples with a minor defect (a frame without a line), counted per reason */
	json_t *retried;  /* rejected tries that were followed by another try, counted per reason */
	uint64_t judged;  /* accepted samples that the oracle has judged */
	uint64_t impossible[ORACLE_VERDICTS]; /* impossible samples, counted per verdict; always 0 for ORACLE_LEGAL */
	uint64_t tries;
	unsigned int max_tries;
	uint64_t stepped; /* samples whose thread was single-stepped */
	uint64_t steps;	  /* the total number of single steps */
	unsigned int max_steps;
	double step_us;
	struct distribution *pause, *took; /* in microseconds */
	double wall_us;			   /* the total duration of all blocks */
	/* CPU time of the sampling and decoding threads in all blocks, minus the CPU time of evaluation_judge() */
	double cpu_us;
	double target_wall_us;	      /* the total time during which the target's progress was measured */
	double progress;	      /* the target's progress during `target_wall_us` */
	struct evaluation evaluation; /* used only for naive modes */
	json_t *depths;		      /* accepted samples, counted per number of frames */
	json_t *leaves;		      /* accepted samples, counted per name of the innermost frame */
};

/* Sets all counts to 0. Returns false if there is not enough memory. */
bool tally_init(struct tally *tally);
void tally_clear(struct tally *tally);

/*
 * Counts a sample.
 *   thread   the frames of the sample, and the verdict of all checks
 *   judged   whether there is an oracle
 *   oracle   the verdict of the oracle; used only if there is an oracle and the sample was accepted
 */
void tally_sample(struct tally *tally, const struct sample *sample, const struct trace_thread *thread, bool judged,
		  enum oracle_verdict oracle);

/* Returns how many of the accepted samples are impossible, according to the oracle. */
uint64_t tally_impossible(const struct tally *tally);

#endif
