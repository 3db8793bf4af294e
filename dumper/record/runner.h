/*
 * Whether the thread that was seen to run still does. The kernel tells, in memory that it shares with rbdump, each time
 * that the thread is taken from its CPU or put on one (record/wakeups.h): as long as it has told nothing, to ask is no
 * system call. To tell costs the thread something: so it is to tell of none but one that has run for a while, and no
 * longer if it does so often. From when that is prepared to runner_clear(), each switch on the machine costs a little.
 *
 * Belongs to one thread of rbdump at a time.
 */
#ifndef RBDUMP_RUNNER_H
#define RBDUMP_RUNNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "record/wakeups.h"
#include "target/task.h"

struct runner {
	pid_t tid;	      /* who was asked for last; 0: nobody */
	bool ran;	      /* it ran then */
	unsigned int rounds;  /* how often it was asked for, and ran, without the kernel telling, */
	unsigned int wanted;  /* and how often until that is to tell */
	unsigned int rests;   /* rounds in a row that began since it was asked for */
	struct wakeup wakeup; /* fd -1: the kernel does not tell */
	int credit;	      /* used up: it tells too often */
	bool may_tell;	      /* the kernel may tell, */
	int prepared;	      /* and is ready to: wakeups_prepare() */
};

/*
 * Nobody was asked for. May take some 10 ms.
 *   undisturbed  whether who asks leaves the thread on its CPU; else the kernel would tell each time
 */
void runner_init(struct runner *runner, bool undisturbed);
void runner_clear(struct runner *runner);

/* Forgets who was asked for. */
void runner_forget(struct runner *runner);

/*
 * Whether a thread runs, or would if it had a CPU. It is the thread that was asked for last if `tid` is the same: the
 * caller forgets one that has ended.
 */
bool runner_runs(struct runner *runner, pid_t tid, const struct task *task);

/* Notes that a round begins, in which that is asked or not. */
void runner_round(struct runner *runner);

#endif
