#include "target/preemption.h"

#include <stdlib.h>

#include "target/stopping.h"

/* Opens the first runnable thread behind `tid`, or else the first of all. False if none is runnable. */
static bool find_runnable(pid_t pid, pid_t tid, struct task *ret)
{
	size_t count, first = 0;
	pid_t *tids = live_list_threads(pid, &count);
	bool found = false;

	while (first < count && tids[first] <= tid)
		first++;
	for (size_t i = 0; i < count && !found; i++) {
		task_open(ret, pid, tids[(first + i) % count]);
		found = task_runs(ret);
		if (!found)
			task_close(ret);
	}
	free(tids);
	return found;
}

void preemption_begin(struct preemption *preemption, pid_t pid)
{
	preemption->task = TASK_CLOSED;
	preemption->then = (struct task_look){0};
	preemption->on_its_cpu = false;
	/* The first one behind tid - 1 is the thread tid itself, if it is runnable. */
	if (!find_runnable(pid, preemption->held ? preemption->tid - 1 : preemption->tid, &preemption->task)) {
		preemption->tid = 0;
		return;
	}
	preemption->tid = preemption->task.tid;
	if (sched_getaffinity(0, sizeof(preemption->cpus), &preemption->cpus) != 0)
		return;
	preemption->on_its_cpu = task_follow(&preemption->task, &preemption->cpus, -1) >= 0;
	preemption->then = task_look(&preemption->task, NULL);
	/* The kernel may have moved the thread to another CPU at that moment. */
	preemption->then.known &= task_cpu(&preemption->task) == sched_getcpu();
}

void preemption_end(struct preemption *preemption)
{
	const struct task_look *then = &preemption->then;

	preemption->held = preemption->tid == 0 || (preemption->on_its_cpu && then->known && then->switches != 0 &&
						    task_look(&preemption->task, NULL).switches == then->switches);
	task_close(&preemption->task);
	if (preemption->on_its_cpu)
		sched_setaffinity(0, sizeof(preemption->cpus), &preemption->cpus);
}
