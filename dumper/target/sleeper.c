#include "target/sleeper.h"

#include <unistd.h>

#include "target/task.h"
#include "target/thread_pointer.h"

bool sleeper_find(struct target *target, pid_t tid, struct native_thread *ret)
{
	struct task_look look;
	uint64_t pointer = 0;
	struct task task;

	task_open(&task, target->pid, tid);
	look = task_look(&task, NULL);
	if (look.asleep && look.switches != 0 && look.syscall >= 0 && look.interruptible)
		pointer = thread_pointer(target, tid);
	if (pointer == 0) {
		const bool waits = look.asleep && look.syscall >= 0 && !look.interruptible && !look.stopped;

		*ret = (struct native_thread){.tid = tid, .switches_fd = -1, .switches = waits ? look.switches : 0};
		task_close(&task);
		return false;
	}
	task_keep_switches(&task);
	*ret = (struct native_thread){
	    .tid = tid,
	    .stopped = true,
	    .asleep = true,
	    .switches_fd = task.schedstat_fd,
	    .switches = look.switches,
	    .fs_base = pointer,
	};
	return true;
}

bool sleeper_slept_on(const struct native_thread *thread)
{
	const struct task_look look = {.known = true, .asleep = true, .switches = thread->switches};
	struct task task = TASK_CLOSED;

	task.schedstat_fd = thread->switches_fd;
	return task_sleeps_on(&task, &look);
}

void sleeper_forget(struct native_thread *thread)
{
	if (thread->switches_fd >= 0)
		close(thread->switches_fd);
	thread->switches_fd = -1;
}
