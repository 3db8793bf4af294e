#include "target/hold.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static struct hold *mine;
static hold_sleep *guard_sleeps;

/* gettid() of this thread, to save a system call per stop. After a fork, hold_use() resets it. */
static _Thread_local pid_t self;

void hold_use(struct hold *hold, hold_sleep *sleep)
{
	mine = hold;
	guard_sleeps = sleep;
	self = 0;
}

void hold_begin(pid_t target)
{
	if (!mine)
		return;
	if (self == 0)
		self = gettid();
	mine->thread = self;
	mine->target = target;
	mine->since_ns = monotonic_ns();
	mine->begun++;
	/* The guard looks at `begun` after it has set this: so one of both sees what the other has done. */
	if (*guard_sleeps == 0)
		return;
	*guard_sleeps = 0;
	syscall(SYS_futex, guard_sleeps, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void hold_wait(hold_sleep *sleep, long timeout_ns)
{
	syscall(SYS_futex, sleep, FUTEX_WAIT, 1,
		&(struct timespec){.tv_sec = timeout_ns / 1000000000L, .tv_nsec = timeout_ns % 1000000000L}, NULL, 0);
	*sleep = 0;
}

void hold_end(void)
{
	if (mine)
		mine->since_ns = 0;
}
