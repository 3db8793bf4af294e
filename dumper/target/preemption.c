#include "target/preemption.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/process_stat.h"
#include "target/stopping.h"

/* The most threads that are looked at. */
#define LOOKED_AT 4096u

static bool is_runnable(const struct task *task)
{
	return process_stat_state(task->stat_fd) == 'R';
}

void preemption_choose(struct preemption *preemption, pid_t pid)
{
	const pid_t last = preemption->tid;
	struct process_stat stat;
	size_t count;
	pid_t *tids = live_list_threads(pid, &count), first = 0, next = 0;
	char tasks[32];

	snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	preemption->runnable = count == 0 || count > LOOKED_AT ? -1 : 0;
	for (size_t i = 0; i < count && preemption->runnable >= 0; i++) {
		/* A thread that has ended meanwhile cannot be read. */
		if (!process_stat_read(tasks, tids[i], &stat) || stat.state != 'R')
			continue;
		preemption->runnable += preemption->runnable < 2;
		first = first != 0 ? first : tids[i];
		if (next == 0 && tids[i] > last)
			next = tids[i];
	}
	free(tids);
	preemption->tid = next != 0 ? next : first;
	preemption->task = TASK_CLOSED;
	if (preemption->tid != 0)
		task_open(&preemption->task, pid, preemption->tid);
}

/* Whether the calling thread gets the CPU of a thread if it has a real-time priority, and a share of it if it has not. */
static bool yields_to_us(pid_t tid)
{
	const int policy = sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;

	return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

void preemption_begin(struct preemption *preemption)
{
	const struct task *task = &preemption->task;

	preemption->switches = 0;
	preemption->moved = preemption->tid != 0 && yields_to_us(preemption->tid) &&
			    sched_getaffinity(0, sizeof(preemption->cpus), &preemption->cpus) == 0 &&
			    task_follow(task, &preemption->cpus, -1) >= 0;
	/* The kernel may have moved it to another CPU at that moment, or it may have gone to sleep before. */
	if (preemption->moved && task_cpu(task) == sched_getcpu() && is_runnable(task))
		preemption->switches = task_look(task, NULL).switches;
}

void preemption_end(struct preemption *preemption)
{
	const struct task *task = &preemption->task;

	/* If it sleeps now, it has run. */
	preemption->held =
	    preemption->runnable == 0 || (preemption->runnable == 1 && preemption->switches != 0 && is_runnable(task) &&
					  task_look(task, NULL).switches == preemption->switches);
	task_close(&preemption->task);
	if (preemption->moved && sched_setaffinity(0, sizeof(preemption->cpus), &preemption->cpus) != 0) {
		/* It may use none of those CPUs any more (cpusets(7)): it may use what the kernel permits. */
		memset(&preemption->cpus, 0xff, sizeof(preemption->cpus));
		sched_setaffinity(0, sizeof(preemption->cpus), &preemption->cpus);
	}
	preemption->moved = false;
}
