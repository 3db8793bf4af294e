/*
 * Whether a running thread may be read from another CPU than its own (glance(), sampler.c): a stack that is known needs
 * nothing else, while to go to the thread's CPU costs the target. But stacks that are new would be seen less often than
 * they are there: so it may be only while there are next to none of them.
 *
 * Belongs to one thread.
 */
#ifndef RBDUMP_GLANCES_H
#define RBDUMP_GLANCES_H

#include <stdbool.h>
#include <stdint.h>

struct glances {
	unsigned int in_a_row; /* how many stacks were known of late, and how many of them have to be */
	unsigned int wanted_in_a_row;
	unsigned int since_plain; /* glances, since a sample was last to be taken without; and when that was */
	uint64_t plain_ns;
	unsigned int found; /* known at a glance, since wanted_in_a_row changed */
};

void glances_init(struct glances *glances);

/* Whether to glance at the thread for a sample. `now_ns` is of a clock that does not go back. */
bool glances_next(struct glances *glances, uint64_t now_ns);

/* Notes that what was glanced at was known: there is a sample. Only after a glances_next() that said so. */
void glances_found(struct glances *glances);

/*
 * Notes whether a stack was known that was taken on the thread's CPU.
 *   in_vain  after a glance: it may be another one than was there then
 */
void glances_taken(struct glances *glances, bool is_known, bool in_vain);

/* All that was known is forgotten. */
void glances_forget(struct glances *glances);

#endif
