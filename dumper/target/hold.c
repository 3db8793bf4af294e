#include "target/hold.h"

#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static struct hold *mine;

/* gettid() of this thread, to save a system call per stop. After a fork, hold_use() resets it. */
static _Thread_local pid_t self;

void hold_use(struct hold *hold)
{
	mine = hold;
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
}

void hold_end(void)
{
	if (mine)
		mine->since_ns = 0;
}
