/*
 * Decides whether to read the stack of a running thread "remotely", that is, from another CPU (source_unpaused.c). If
 * the stack is in the cache, a remote read is enough. With a remote read, the target loses less time, because rbdump
 * does not move to the thread's CPU. But if the stack is new (not in the cache), rbdump must read the stack again on
 * the thread's CPU. Between the two reads, the thread continues to run, so the new stack may be gone at the second
 * read. So with remote reads, new stacks are sampled too rarely. For this reason, remote reads are allowed only while
 * hardly any stack is new.
 *
 * A struct remote_reads belongs to one thread of rbdump.
 */
#ifndef RBDUMP_REMOTE_READS_H
#define RBDUMP_REMOTE_READS_H

#include <stdbool.h>
#include <stdint.h>

struct remote_reads {
	/*
	 * How many stacks in a row were in the cache. Stacks for which a remote read was tried are not counted. But if
	 * a remote read fails, and the stack that is then read on the thread's CPU is new, the number is reduced. The
	 * number is at most a little more than `wanted_in_a_row`.
	 */
	unsigned int in_a_row;
	unsigned int wanted_in_a_row; /* how large `in_a_row` must be before remote reads are allowed */
	/*
	 * Even while remote reads are allowed, a few samples are taken without a remote read. These samples are called
	 * plain. `since_plain` says how many remote reads have been tried since the last plain sample.
	 */
	unsigned int since_plain;
	uint64_t plain_ns;  /* when the last plain sample was taken */
	unsigned int found; /* how many remote reads have found a cached stack since `wanted_in_a_row` last changed */
};

void remote_reads_init(struct remote_reads *reads);

/* Whether to try a remote read for the next sample. `now_ns` is the current time (CLOCK_MONOTONIC). */
bool remote_reads_next(struct remote_reads *reads, uint64_t now_ns);

/*
 * Notes that a remote read has found a stack that is in the cache. The sample uses this stack. Call this function only
 * after remote_reads_next() has returned true.
 */
void remote_reads_found(struct remote_reads *reads);

/*
 * Notes a stack that was taken on the thread's CPU.
 *   is_known  whether the stack was in the cache
 *   in_vain   whether a remote read was tried first for this sample, and failed. Since that read, the stack may have
 *             changed
 */
void remote_reads_taken(struct remote_reads *reads, bool is_known, bool in_vain);

/* Sets `in_a_row` to 0. Call this function when the cache has been emptied. */
void remote_reads_forget(struct remote_reads *reads);

#endif
