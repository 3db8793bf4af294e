#include "target/sleeper.h"

#include <unistd.h>

#include "target/task.h"
#include "target/thread_pointer.h"

/* The number of the stack pointer among the registers. */
#define RSP 7u

bool sleeper_find(struct target *target, pid_t tid, struct native_thread *ret)
{
	struct task_look look;
	uint64_t pointer = 0;
	uint64_t ip = 0, sp = 0;
	struct task task;
	bool placed;

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
	placed = task_place(&task, &ip, &sp);
	task_keep_switches(&task);
	*ret = (struct native_thread){
	    .tid = tid,
	    .stopped = true,
	    .asleep = true,
	    .switches_fd = task.schedstat_fd,
	    .switches = look.switches,
	    .fs_base = pointer,
	};
	if (placed) {
		ret->registers.ip = ip;
		ret->registers.of[RSP] = sp;
		ret->registers.known = 1u << RSP;
	}
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
