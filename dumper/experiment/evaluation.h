/*
 * Measures how reliable rbdump's checks of stacks are. In a naive mode, rbdump accepts stacks without these checks.
 * This module then applies the checks to the accepted stacks. A comparison with an oracle shows how many wrong stacks
 * and how many right stacks the checks reject.
 */
#ifndef RBDUMP_EVALUATION_H
#define RBDUMP_EVALUATION_H

#include <jansson.h>

#include "ruby/call_site.h"
#include "sampling/sampler.h"

/* The results of all checks of one sample. */
struct judgement {
	enum reason reason;		  /* why the hard checks reject the sample; REASON_NONE: not rejected */
	enum call_site_verdict innermost; /* the verdict of call_site_judge() on the innermost frame */
	/*
	 * The combined verdict on all frames. If the verdict on at least one frame is "contradicts", the combined
	 * verdict is "contradicts". Otherwise, if the verdict on at least one frame is "agrees", the combined verdict
	 * is "agrees". If the verdict on all frames is "undecided", the combined verdict is "undecided".
	 */
	enum call_site_verdict any;
};

/*
 * Checks a sample of a naive mode. The sample must have a stack copy.
 *   ruby  the sampled Ruby; bytes that are not in the stack copy are read from the memory of this Ruby
 */
struct judgement evaluation_judge(const struct ruby *ruby, const struct sample *sample);

/* Whether a stack is correct, according to the oracle. The oracle does not depend on rbdump's checks. */
enum truth {
	TRUTH_UNKNOWN,	  /* nothing is known, because there is no oracle */
	TRUTH_LEGAL,	  /* the oracle says that the stack is legal */
	TRUTH_IMPOSSIBLE, /* the oracle says that the stack is impossible */
	TRUTH_IN_WINDOW,  /* the oracle says that the stack is legal, but the thread was stopped in a torn window */
	TRUTHS
};

struct evaluation {
	uint64_t accepted[TRUTHS]; /* the number of stacks that the hard checks accept */
	json_t *rejected[TRUTHS];  /* for each reason: how many stacks the hard checks reject for this reason */
	/*
	 * For each verdict, the number of accepted stacks that have this verdict. The verdicts `innermost` and `any` of
	 * struct judgement are counted separately.
	 */
	uint64_t innermost[TRUTHS][CALL_SITE_VERDICTS], any[TRUTHS][CALL_SITE_VERDICTS];
};

/* Sets all counts to 0. Returns false if there is not enough memory. */
bool evaluation_init(struct evaluation *evaluation);
void evaluation_clear(struct evaluation *evaluation);

/* Counts one judgement. */
void evaluation_count(struct evaluation *evaluation, const struct judgement *judgement, enum truth truth);

/* Returns the counts as JSON (see doc/json.md), or NULL if there is not enough memory. */
json_t *evaluation_object(const struct evaluation *evaluation);

#endif
