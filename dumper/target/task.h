/*
 * What the kernel says of a native thread: whether there still is one, whether it sleeps, in which system call, and
 * whether it has run since it was last looked at. By files that are kept open: they stay its own when its id has become
 * that of another.
 */
#ifndef RBDUMP_TASK_H
#define RBDUMP_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct task {
	int stat_fd, schedstat_fd, syscall_fd; /* of /proc/PID/task/TID; -1 if they are not open */
	pid_t pid, tid;
};

#define TASK_CLOSED ((struct task){-1, -1, -1, 0, 0})

void task_open(struct task *task, pid_t pid, pid_t tid);

/* Closes what task_sleeps_on() does not need. */
void task_keep_switches(struct task *task);

void task_close(struct task *task);

/* Whether it has ended. That is not known of one whose files could not be opened. */
bool task_has_ended(const struct task *task);

/* The CPU that it runs on, or was on last; -1 if that is not known. */
int task_cpu(const struct task *task);

struct task_look {
	bool known;	    /* false: there is no such thread, or the kernel does not tell */
	uint64_t switches;  /* how often it was given a CPU, ever; 0: not known */
	bool asleep;	    /* it waits for something; else it runs, or could */
	int syscall;	    /* in which system call it is asleep; -1 if in none, or not known */
	bool stopped;	    /* asleep, stopped by a signal (SIGSTOP), a tracer or a freezer */
	bool paging;	    /* asleep, in no system call, for a page of its memory */
	bool interruptible; /* asleep, neither stopped nor in a sleep that is not to be interrupted */
};

/*
 *   since  the look before: of a thread that has slept on since, what that says is not asked for again; NULL
 */
struct task_look task_look(const struct task *task, const struct task_look *since);

/* Whether it runs, or could: not if it is asleep, or this cannot be known. */
bool task_runs(const struct task *task);

/*
 * Whether a thread that was asleep at a look has not run since. It was asleep: so it is where it was if it has not been
 * given a CPU (kernel/sched/stats.h, sched_info_arrive()).
 */
bool task_sleeps_on(const struct task *task, const struct task_look *since);

#endif
