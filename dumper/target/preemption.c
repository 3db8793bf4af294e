#include "target/preemption.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/priority.h"
#include "target/process_stat.h"
#include "target/stopping.h"

/* The most threads that are looked at to choose one, and while it is kept from running. */
#define CHOSEN_OF 4096u
#define LOOKED_AT 128u

/* The state of a thread of a process; 0: not known, or the thread has ended. */
static char state_of(pid_t pid, pid_t tid)
{
	struct process_stat stat;
	char tasks[32];

	snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	return process_stat_read(tasks, tid, &stat) ? stat.state : 0;
}

void preemption_choose(struct preemption *preemption, pid_t pid, bool any)
{
	size_t count;
	pid_t *tids = live_list_threads(pid, &count), first = 0, next = 0;

	for (size_t i = 0; any && i < count && count <= CHOSEN_OF && next == 0; i++) {
		if (state_of(pid, tids[i]) != 'R')
			continue;
		first = first != 0 ? first : tids[i];
		if (tids[i] > preemption->tid)
			next = tids[i];
	}
	free(tids);
	preemption->tid = next != 0 ? next : first;
	preemption->task = TASK_CLOSED;
	preemption->task.pid = pid;
	if (preemption->tid != 0)
		task_open(&preemption->task, pid, preemption->tid);
}

/*
 * The CPU time of a process in ns; 0 if not known. It increases when a thread leaves its CPU, and at each tick of the timer
 * (kernel/sched/cputime.c, thread_group_cputime()).
 */
static uint64_t cpu_time(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Whether the calling thread, if it is on the CPU of a thread, runs rather than that thread, or at least as much. */
static bool is_before(pid_t tid)
{
	const int policy = sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;

	if (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE)
		return false;
	return priority_is_real_time() || (sched_getscheduler(0) == SCHED_OTHER &&
					   getpriority(PRIO_PROCESS, 0) <= getpriority(PRIO_PROCESS, (id_t)tid));
}

static bool is_runnable(const struct task *task)
{
	return process_stat_state(task->stat_fd) == 'R';
}

void preemption_begin(struct preemption *preemption)
{
	const struct task *task = &preemption->task;

	preemption->cpu = -1;
	preemption->switches = 0;
	if (preemption->tid != 0 && is_before(preemption->tid) &&
	    sched_getaffinity(0, sizeof(preemption->cpus), &preemption->cpus) == 0)
		preemption->cpu = task_follow(task, &preemption->cpus, -1);
	if (preemption->cpu >= 0) {
		/* The count comes first: if the thread is given another CPU after that, it increases. */
		preemption->switches = task_switches(task);
		if (task_cpu(task) != preemption->cpu || !is_runnable(task))
			preemption->switches = 0;
	}
	preemption->cpu_ns = cpu_time(task->pid);
}

/*
 * Whether no thread of the process but the chosen one is runnable. One that has run since preemption_begin(), and has left its
 * CPU, is told by the CPU time of the process.
 */
static bool others_rest(const struct preemption *preemption)
{
	const pid_t pid = preemption->task.pid;
	size_t count;
	pid_t *tids = live_list_threads(pid, &count);
	bool rest = count > 0 && count <= LOOKED_AT;

	for (size_t i = 0; i < count && rest; i++) {
		const char state = tids[i] == preemption->tid ? 'S' : state_of(pid, tids[i]);

		rest = state != 0 && state != 'R';
	}
	free(tids);
	return rest;
}

/* Whether the chosen thread has waited for its CPU since preemption_begin(). */
static bool has_waited(const struct preemption *preemption)
{
	return preemption->switches != 0 && is_runnable(&preemption->task) &&
	       task_switches(&preemption->task) == preemption->switches;
}

/* A thread that may use more CPUs again stays where it is. So it leaves the CPU first. */
static void leave(struct preemption *preemption)
{
	cpu_set_t others = preemption->cpus;

	CPU_CLR((size_t)preemption->cpu, &others);
	if (CPU_COUNT(&others) > 0)
		sched_setaffinity(0, sizeof(others), &others);
	if (sched_setaffinity(0, sizeof(preemption->cpus), &preemption->cpus) == 0)
		return;
	/* It may use none of those CPUs any more (cpusets(7)): it may use what the kernel permits. */
	memset(&others, 0xff, sizeof(others));
	sched_setaffinity(0, sizeof(others), &others);
}

void preemption_end(struct preemption *preemption)
{
	preemption->held = (preemption->tid == 0 || has_waited(preemption)) && others_rest(preemption) &&
			   preemption->cpu_ns != 0 && cpu_time(preemption->task.pid) == preemption->cpu_ns;
	task_close(&preemption->task);
	if (preemption->cpu >= 0)
		leave(preemption);
	preemption->cpu = -1;
}
