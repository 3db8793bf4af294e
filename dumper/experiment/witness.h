/*
 * What the checks say of stacks that nobody checked: against an oracle, it tells how many wrong stacks they find, and
 * how many right ones they reject.
 */
#ifndef RBDUMP_WITNESS_H
#define RBDUMP_WITNESS_H

#include <jansson.h>

#include "sample/sampler.h"
#include "vm/call_site.h"

/* What was found out about one sample. */
struct testimony {
	enum reason reason; /* what the hard checks have against it; REASON_NONE: nothing */
	/* Of call-site evidence: on the innermost frame, and on any. A stack contradicts if one of its frames does, and
	   agrees if none does and one agrees. */
	enum call_site_verdict innermost, any;
};

/*
 * Looks at a copied sample of one of the naive modes.
 *   ruby  reads through the memory that the sample's shot is laid over, and that names are read from
 */
struct testimony witness_hear(const struct ruby *ruby, const struct sample *sample);

/* What is known of a stack by other means. */
enum truth {
	TRUTH_UNKNOWN,	  /* there is no oracle */
	TRUTH_LEGAL,	  /* by the oracle */
	TRUTH_IMPOSSIBLE, /* by the oracle */
	TRUTH_IN_WINDOW,  /* legal by its names, but the thread was stopped where its stack is torn */
	TRUTHS
};

struct witness {
	uint64_t accepted[TRUTHS]; /* by the hard checks */
	json_t *rejected[TRUTHS];  /* by those: count by reason */
	/* Of those that the hard checks accept. */
	uint64_t innermost[TRUTHS][CALL_SITE_VERDICTS], any[TRUTHS][CALL_SITE_VERDICTS];
};

/* False if out of memory. */
bool witness_init(struct witness *witness);
void witness_clear(struct witness *witness);
void witness_count(struct witness *witness, const struct testimony *testimony, enum truth truth);

/* As doc/json.md has it; NULL if out of memory. */
json_t *witness_object(const struct witness *witness);

#endif
