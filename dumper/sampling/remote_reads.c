#include "sampling/remote_reads.h"

/*
 * How many stacks in a row must be known before remote reads are allowed. Each time that a new stack follows, the number
 * is doubled, at most to WANTED_MOST. It is halved when remote reads have found FOUND_TO_HALVE times as many stacks in the
 * cache.
 */
#define WANTED_LEAST   256u
#define WANTED_MOST    8192u
#define FOUND_TO_HALVE 2u

/* At most so many more known stacks than are wanted are counted. So new stacks end remote reads soon, at any time. */
#define IN_ADVANCE 64u

/* If a remote read has failed, and the stack that is then taken on the CPU is not in the cache, so many known stacks are
 * subtracted. */
#define IN_VAIN 8u

/*
 * One sample of PLAIN_EACH is taken without a remote read, but at most one in PLAIN_NS, because a move to the thread's CPU
 * and back takes longer than a sample.
 */
#define PLAIN_EACH 64u
#define PLAIN_NS   64000000u

void remote_reads_init(struct remote_reads *reads)
{
	*reads = (struct remote_reads){.wanted_in_a_row = WANTED_LEAST};
}

bool remote_reads_next(struct remote_reads *reads, uint64_t now_ns)
{
	if (reads->in_a_row < reads->wanted_in_a_row)
		return false;
	if (++reads->since_plain < PLAIN_EACH || now_ns - reads->plain_ns < PLAIN_NS)
		return true;
	reads->since_plain = 0;
	reads->plain_ns = now_ns;
	return false;
}

void remote_reads_found(struct remote_reads *reads)
{
	if (reads->wanted_in_a_row == WANTED_LEAST || ++reads->found < FOUND_TO_HALVE * reads->wanted_in_a_row)
		return;
	reads->wanted_in_a_row /= 2;
	reads->in_a_row -= reads->wanted_in_a_row;
	reads->found = 0;
}

void remote_reads_taken(struct remote_reads *reads, bool is_known, bool in_vain)
{
	const bool was_enough = reads->in_a_row >= reads->wanted_in_a_row;

	if (in_vain) {
		if (!is_known)
			reads->in_a_row -= reads->in_a_row < IN_VAIN ? reads->in_a_row : IN_VAIN;
		return;
	}
	if (is_known) {
		if (reads->in_a_row < reads->wanted_in_a_row + IN_ADVANCE)
			reads->in_a_row++;
		return;
	}
	reads->in_a_row = 0;
	if (was_enough && reads->wanted_in_a_row < WANTED_MOST) {
		reads->wanted_in_a_row *= 2;
		reads->found = 0;
	}
}

void remote_reads_forget(struct remote_reads *reads)
{
	reads->in_a_row = 0;
}
