/*
 * What the kernel says of a native thread: whether it sleeps, in which system call, and whether it has run since it was
 * last looked at.
 */
#ifndef RBDUMP_TASK_H
#define RBDUMP_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct task {
	int schedstat_fd, syscall_fd; /* of /proc/PID/task/TID; -1 if they are not open */
};

void task_open(struct task *task, pid_t pid, pid_t tid);
void task_close(struct task *task);

struct task_look {
	bool known;	   /* false: there is no such thread, or the kernel does not tell */
	uint64_t switches; /* how often it was given a CPU, ever; 0: not known */
	bool asleep;	   /* it waits for something; else it runs, or could */
	int syscall;	   /* in which system call it is asleep; -1 if in none, or not known */
};

struct task_look task_look(const struct task *task);

/* Whether it runs, or could: not if it is asleep, or this cannot be known. */
bool task_runs(const struct task *task);

/*
 * Whether a thread that was asleep at a look has not run since. It was asleep: so it is where it was if it has not been
 * given a CPU (kernel/sched/stats.h, sched_info_arrive()).
 */
bool task_sleeps_on(const struct task *task, const struct task_look *since);

#endif
