/*
 * The runs of a profile, thread by thread; and what a thread and its process are called where a reader has no fields
 * for that.
 */
#ifndef RBDUMP_THREAD_RUNS_H
#define RBDUMP_THREAD_RUNS_H

#include "decode/text.h"
#include "recording/profile.h"

struct thread_runs {
	uint32_t *runs; /* indices of all runs: those of the first thread, in the order of the profile, then the next */
	size_t *first;	/* where in `runs` those of a thread begin; one more than there are threads */
};

/* False if out of memory; there is then nothing to clear. */
bool thread_runs_collect(const struct profile *profile, struct thread_runs *ret);
void thread_runs_clear(struct thread_runs *runs);

/* What a stack is called of which nothing is known. */
#define THREAD_RUNS_NO_STACK "(no stack)"

/* Appends "worker", "main", or "thread 1235" of one that has no name. */
void thread_runs_add_name(const struct profile_thread *thread, struct text *text);
/* Appends "ruby 1234: worker (1235)". */
void thread_runs_add_title(const struct profile *profile, const struct profile_thread *thread, struct text *text);

#endif
