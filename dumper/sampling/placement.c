#include "sampling/placement.h"

#include "base/clock.h"
#include "base/priority.h"

/* How long a CPU is assumed not to be the thread's, after that was checked: threads seldom move. */
#define OFF_NS 50000000L

/* Keeps the thread that processes the samples off the target's CPU, so that it takes no time from the target. */
static void keep_processing_off(struct placement *placement, int cpu)
{
	cpu_set_t set = placement->cpus;

	if (placement->processing == 0 || cpu == placement->processing_off || CPU_COUNT(&set) < 2)
		return;
	/* If several threads of the target run by turns, the processing thread must not move back and forth all the time. */
	if (cpu >= 0 && placement->moved.tv_sec != 0 && elapsed_ns(&placement->moved) < OFF_NS)
		return;
	clock_gettime(CLOCK_MONOTONIC, &placement->moved);
	placement->processing_off = cpu;
	if (cpu >= 0)
		CPU_CLR(cpu, &set);
	sched_setaffinity(placement->processing, sizeof(set), &set);
}

void placement_init(struct placement *placement)
{
	*placement = (struct placement){.cpu = -1, .processing_off = -1};
	sched_getaffinity(0, sizeof(placement->cpus), &placement->cpus);
}

void placement_end(struct placement *placement)
{
	keep_processing_off(placement, -1);
}

bool placement_enter(struct placement *placement)
{
	placement->cpu = -1;
	placement->off = (struct timespec){0};
	placement->off_tid = 0;
	keep_processing_off(placement, -1);
	sched_setaffinity(0, sizeof(placement->cpus), &placement->cpus);
	priority_raise(PRIORITY_SAMPLES);
	return priority_is_real_time();
}

bool placement_follow(struct placement *placement, const struct task *task)
{
	const int cpu = task_follow(task, &placement->cpus, placement->cpu);

	if (cpu < 0)
		return false;
	placement->cpu = cpu;
	placement->off = (struct timespec){0};
	placement->off_tid = 0;
	keep_processing_off(placement, cpu);
	return true;
}

/*
 * A reader that wakes up on the thread's CPU by chance takes that CPU away from the thread. On a machine of many CPUs, the
 * chance is small.
 */
void placement_avoid(struct placement *placement, pid_t tid, const struct task *task)
{
	int cpu = task_cpu(task);
	cpu_set_t set = placement->cpus;

	placement->cpu = -1;
	placement->off_tid = 0;
	clock_gettime(CLOCK_MONOTONIC, &placement->off);
	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_CLR(cpu, &set);
	if (CPU_COUNT(&set) == 0 || sched_setaffinity(0, sizeof(set), &set) != 0)
		return;
	placement->off_tid = tid;
	keep_processing_off(placement, cpu);
}

/*
 * If rbdump wakes up on the thread's CPU each time, it takes that CPU away from the thread, and the kernel moves the thread
 * to another CPU. The thread loses more time by that than by a stop from another CPU, which takes a little longer.
 */
void placement_stay_off(struct placement *placement, pid_t tid, const struct task *task)
{
	if (placement->off.tv_sec == 0 || elapsed_ns(&placement->off) > OFF_NS)
		placement_avoid(placement, tid, task);
}
