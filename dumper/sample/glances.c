#include "sample/glances.h"

/*
 * So many stacks have to be known in a row; twice as many each time that it turns out not to stay so, and half as many
 * once so many times as many were known at a glance.
 */
#define WANTED_LEAST   256u
#define WANTED_MOST    8192u
#define FOUND_TO_HALVE 2u

/* How many more than are wanted count: however long nothing was new, it is noticed as soon when that changes. */
#define IN_ADVANCE 64u

/* How many known stacks one weighs that is not known after a glance in vain. */
#define IN_VAIN 8u

/*
 * One sample of so many is taken without a glance, but not sooner than so long after the last: to go to the thread's
 * CPU and back takes longer than a sample.
 */
#define PLAIN_EACH 64u
#define PLAIN_NS   64000000u

void glances_init(struct glances *glances)
{
	*glances = (struct glances){.wanted_in_a_row = WANTED_LEAST};
}

bool glances_next(struct glances *glances, uint64_t now_ns)
{
	if (glances->in_a_row < glances->wanted_in_a_row)
		return false;
	if (++glances->since_plain < PLAIN_EACH || now_ns - glances->plain_ns < PLAIN_NS)
		return true;
	glances->since_plain = 0;
	glances->plain_ns = now_ns;
	return false;
}

void glances_found(struct glances *glances)
{
	if (glances->wanted_in_a_row == WANTED_LEAST || ++glances->found < FOUND_TO_HALVE * glances->wanted_in_a_row)
		return;
	glances->wanted_in_a_row /= 2;
	glances->in_a_row -= glances->wanted_in_a_row;
	glances->found = 0;
}

void glances_taken(struct glances *glances, bool is_known, bool in_vain)
{
	const bool was_enough = glances->in_a_row >= glances->wanted_in_a_row;

	if (in_vain) {
		if (!is_known)
			glances->in_a_row -= glances->in_a_row < IN_VAIN ? glances->in_a_row : IN_VAIN;
		return;
	}
	if (is_known) {
		if (glances->in_a_row < glances->wanted_in_a_row + IN_ADVANCE)
			glances->in_a_row++;
		return;
	}
	glances->in_a_row = 0;
	if (was_enough && glances->wanted_in_a_row < WANTED_MOST) {
		glances->wanted_in_a_row *= 2;
		glances->found = 0;
	}
}

void glances_forget(struct glances *glances)
{
	glances->in_a_row = 0;
}
