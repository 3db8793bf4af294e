/*
 * Finds out how much CPU time each native thread of a process has used since the previous look at the process
 * (dump/looker.h), and whether the thread has run at all since then. rbdump gets both facts from the kernel, without
 * stopping the process.
 *
 * The times are those of schedstat, in nanoseconds (Documentation/scheduler/sched-stats.rst). If the kernel does not
 * have the file schedstat, rbdump knows neither the CPU time of a thread nor whether a thread has run.
 */
#ifndef RBDUMP_TASK_SET_H
#define RBDUMP_TASK_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/task.h"

/* The maximum number of threads in a set. Threads beyond this number are not in the set. */
#define TASK_SET_MAX 65536

struct task_entry {
	pid_t tid;
	struct task task;
	bool listed;	      /* task_set_begin() found the thread when it last listed the threads */
	bool old;	      /* `before` and `before_look` are set */
	bool known;	      /* `now` and `now_look` are set */
	bool slept;	      /* the thread has not run between `before_look` and task_set_end() */
	uint64_t before, now; /* CPU time since the thread's start, in ns: at the previous look, and at this look */
	struct task_look before_look, now_look;
};

/* In an empty set, all members except `pid` are zero. */
struct task_set {
	pid_t pid;
	struct task_entry *entries; /* sorted by tid */
	size_t count, capacity;
	bool kept; /* task_set_keep() has been called */
};

/*
 * Call this function before a look at the process. Finds threads that are new, drops threads that have ended, and reads
 * how much CPU time each thread has used. Returns false if there is not enough memory.
 */
bool task_set_begin(struct task_set *set);

/* Call this function after the look. Finds out which threads have not run since task_set_begin() of the previous look. */
void task_set_end(struct task_set *set);

/*
 * Call this function after task_set_end() if the look had a result. The next look is then compared with this look. If
 * this function is not called, the next look is compared with the last look for which this function was called.
 */
void task_set_keep(struct task_set *set);

/*
 * Call this function after task_set_end(). Gets what is known about a thread.
 *   cpu_ns  receives the CPU time between task_set_begin() of the previous look and task_set_begin() of this look. If
 *           the thread is new: the CPU time since its start
 *   slept   receives true if the thread has not run at all since task_set_begin() of the previous look. Such a thread
 *           is still at the same place in the program
 * Returns false if the CPU time is not known.
 */
bool task_set_find(const struct task_set *set, pid_t tid, uint64_t *cpu_ns, bool *slept);

/* Whether a thread was started after the previous look. False if there was no previous look, or if there is no such thread. */
bool task_set_is_fresh(const struct task_set *set, pid_t tid);

/* Closes all files, and leaves the set empty. */
void task_set_clear(struct task_set *set);

#endif
