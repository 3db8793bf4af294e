#include "record/runner.h"

#include <errno.h>
#include <stddef.h>

/* After so many rounds in which it ran, the kernel is to tell of it: to arrange that costs as much as some ten of them.
 */
#define RAN_FOR 256u

/*
 * How much more the kernel may tell of it before it is too often: that it was taken from its CPU, and that it was given
 * one again, is two. Each round in which it has told nothing adds one. So of a thread that is preempted in every fourth
 * round it goes on, which still saves most of the looks.
 */
#define CREDIT_MOST 64

/* After so many rounds in a row in which it was not asked for, it does something else by now. */
#define RESTS_MOST 8u

void runner_init(struct runner *runner, bool undisturbed)
{
	*runner = (struct runner){.wakeup = {.fd = -1}, .is_told = undisturbed};
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
}

static void begin_telling(struct runner *runner)
{
	runner->is_told = wakeup_open(NULL, runner->tid, &runner->wakeup) || errno == ESRCH;
	runner->credit = CREDIT_MOST;
}

/* Whether the kernel has told nothing of it since it was seen to run. */
static bool runs_on(struct runner *runner)
{
	unsigned int switches = wakeup_switches(&runner->wakeup);

	if (switches == 0) {
		runner->credit += runner->credit < CREDIT_MOST;
		return runner->ran;
	}
	runner->credit -= (int)switches;
	if (runner->credit < 0)
		stop_telling(runner);
	return false;
}

bool runner_runs(struct runner *runner, pid_t tid, const struct task *task)
{
	runner->rests = 0;
	if (runner->tid != tid) {
		runner_forget(runner);
		runner->tid = tid;
	}
	if (runner->wakeup.fd >= 0 && runs_on(runner))
		return true;
	/* What the kernel tells from here on is after this look. */
	runner->ran = task_runs(task);
	if (runner->wakeup.fd < 0 && runner->ran && runner->is_told && ++runner->rounds >= RAN_FOR) {
		begin_telling(runner);
		/* It may have fallen asleep before the kernel was to tell: it is looked at once more. */
		runner->ran = false;
		return true;
	}
	return runner->ran;
}

void runner_rests(struct runner *runner)
{
	if (runner->wakeup.fd >= 0 && ++runner->rests > RESTS_MOST)
		stop_telling(runner);
}
