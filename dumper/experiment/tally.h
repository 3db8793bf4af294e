/*
 * What is counted of each mode of an experiment.
 */
#ifndef RBDUMP_TALLY_H
#define RBDUMP_TALLY_H

#include <jansson.h>

#include "experiment/oracle.h"
#include "experiment/statistics.h"
#include "experiment/taker.h"
#include "experiment/witness.h"
#include "trace/trace.h"

struct tally {
	uint64_t samples, accepted, late;
	uint64_t in_budget; /* accepted ones that were got within the budget; the last try may end after it */
	uint64_t dropped;   /* nothing was there to be sampled: the thread had ended, or not begun */
	uint64_t off_cpu;   /* taken from another CPU than that of the thread, where that is the mode's own */
	json_t *rejected;   /* count by reason */
	json_t *soft;	    /* accepted ones with something to remark, by reason */
	json_t *retried;    /* tries that were not good enough, by reason */
	uint64_t judged;    /* accepted, by the oracle */
	uint64_t impossible[ORACLE_VERDICTS]; /* by verdict; ORACLE_LEGAL is not counted */
	uint64_t tries;
	unsigned int max_tries;
	uint64_t stepped, steps; /* samples that were stepped, and steps in all */
	unsigned int max_steps;
	double step_us;
	struct distribution *pause, *took; /* microseconds */
	double wall_us, cpu_us;		   /* all blocks; of rbdump, both threads */
	double target_wall_us, progress;   /* between the ends of blocks, and how far the target got meanwhile */
	struct witness witness;		   /* of the naive modes */
	json_t *depths, *leaves; /* of accepted samples: count by number of frames, by name of the innermost */
};

/* False if out of memory. */
bool tally_init(struct tally *tally);
void tally_clear(struct tally *tally);

/* Adds one to the count of a key; keys beyond a bound are counted together as "(others)". */
void tally_count(json_t *counts, const char *key);

/*
 * Counts a sample.
 *   thread   its frames, and the verdict of all checks
 *   judged   whether there is an oracle; then `oracle` is what it says of an accepted sample
 */
void tally_sample(struct tally *tally, const struct sample *sample, const struct trace_thread *thread, bool judged,
		  enum oracle_verdict oracle);

/* How many accepted samples the oracle calls impossible. */
uint64_t tally_impossible(const struct tally *tally);

#endif
