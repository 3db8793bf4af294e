/*
 * Describes the native stack and the Ruby stack of a thread for merge_stacks() (merge.h). The descriptions depend on which
 * functions of Ruby's file interpret code, and which call methods in C. Files without symbols do not say this, so it is
 * learned from the stacks.
 */
#ifndef RBDUMP_DESCRIBE_H
#define RBDUMP_DESCRIBE_H

#include "base/addresses.h"
#include "mixed/merge.h"
#include "mixed/native_walk.h"
#include "ruby/frame.h"

/* What is known of Ruby's functions. The caller sets the first three members; all others are zero at first. */
struct merge_facts {
	const struct module *module; /* the file that contains Ruby */
	struct machine_code *code;
	struct memory *text;	     /* to read code of Ruby methods */
	uint64_t loop;		     /* where the function that interprets code begins; 0: not known */
	struct addresses calls_c;    /* functions that call methods in C */
	struct addresses calls_loop; /* functions that have called the function that interprets code */
};

/* Frees the memory, and forgets what was learned. */
void merge_facts_clear(struct merge_facts *facts);

/* Both stacks of a thread. */
struct described {
	struct merge_function
	    *functions; /* if the native stack was lost, this mark has the place of the last function */
	size_t nr_functions;
	struct merge_frame *frames;
};

/*
 * Describes both stacks.
 *   ruby  used to read methods and code
 * Returns false if there is not enough memory. The caller calls described_clear() in any case.
 */
bool describe(struct merge_facts *facts, const struct ruby *ruby, const struct native_walk *walk,
	      const struct stack *stack, struct described *ret);
void described_clear(struct described *described);

/* Learns from both stacks of a thread. Returns false if there is not enough memory. */
bool merge_facts_learn(struct merge_facts *facts, const struct ruby *ruby, const struct native_walk *walk,
		       const struct stack *stack);

#endif
