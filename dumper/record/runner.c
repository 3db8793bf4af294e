#include "record/runner.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/*
 * After so many rounds in which it ran, the kernel is to tell of it: to arrange that costs as much CPU as some ten of
 * them. Of one of which it then tells too often, after twice as many, up to a most.
 */
#define WANTED_LEAST 256u
#define WANTED_MOST  65536u

/*
 * How much more the kernel may tell of it before it is too often: that it was taken from its CPU, and that it was given
 * one again, is two. Each round in which it has told nothing adds one. So of a thread that is preempted in every fourth
 * round it goes on, which still saves most of the looks.
 */
#define CREDIT_MOST 64

/* After so many rounds in which it was not asked for, it does something else by now. */
#define RESTS_MOST 8u

void runner_init(struct runner *runner, bool undisturbed)
{
	*runner = (struct runner){
	    .wanted = WANTED_LEAST,
	    .wakeup = {.ring = {.fd = -1}},
	    .may_tell = undisturbed,
	    .prepared = undisturbed ? wakeups_prepare() : -1,
	};
}

static void stop_telling(struct runner *runner)
{
	wakeup_close(&runner->wakeup);
	runner->rounds = 0;
}

void runner_forget(struct runner *runner)
{
	stop_telling(runner);
	runner->tid = 0;
	runner->ran = false;
	runner->wanted = WANTED_LEAST;
}

void runner_clear(struct runner *runner)
{
	runner_forget(runner);
	if (runner->prepared >= 0)
		close(runner->prepared);
}

static void begin_telling(struct runner *runner)
{
	runner->rounds = 0;
	runner->credit = CREDIT_MOST;
	runner->may_tell = wakeup_open(NULL, runner->tid, &runner->wakeup) || errno == ESRCH;
}

/* Whether the kernel has told nothing of it since it was seen to run. */
static bool runs_on(struct runner *runner)
{
	const struct wakeup_told told = wakeup_told(&runner->wakeup);

	if (!told.any) {
		runner->credit += runner->credit < CREDIT_MOST;
		return runner->ran;
	}
	runner->credit -= (int)told.switches;
	if (told.ended) {
		stop_telling(runner);
	} else if (runner->credit < 0) {
		stop_telling(runner);
		if (runner->wanted < WANTED_MOST)
			runner->wanted *= 2;
	}
	return false;
}

bool runner_runs(struct runner *runner, pid_t tid, const struct task *task)
{
	runner->rests = 0;
	if (runner->tid != tid) {
		runner_forget(runner);
		runner->tid = tid;
	}
	if (runner->wakeup.ring.fd >= 0 && runs_on(runner))
		return true;
	if (runner->wakeup.ring.fd < 0 && runner->may_tell && runner->rounds >= runner->wanted)
		begin_telling(runner);
	/* What the kernel tells from here on is after this look. */
	runner->ran = task_runs(task);
	if (runner->ran && runner->wakeup.ring.fd < 0)
		runner->rounds++;
	return runner->ran;
}

void runner_round(struct runner *runner)
{
	if (++runner->rests > RESTS_MOST)
		stop_telling(runner);
}
