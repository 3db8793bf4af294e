/*
 * Reads what the kernel shows about a native thread: whether the thread still exists, whether it sleeps, in which system
 * call it sleeps, and whether it has run since the last check. A struct task keeps some of the thread's files in /proc
 * open. An open file never refers to another thread, even if the kernel gives the thread's id to another thread.
 */
#ifndef RBDUMP_TASK_H
#define RBDUMP_TASK_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/system_call.h"

struct task {
	int stat_fd, schedstat_fd, syscall_fd; /* descriptors of files in /proc/PID/task/TID; -1 if not open */
	pid_t pid, tid;
};

#define TASK_CLOSED ((struct task){-1, -1, -1, 0, 0})

/*
 * Opens the files of a thread. If a file cannot be opened, its descriptor is -1. Later calls that need this file then
 * return "not known".
 */
void task_open(struct task *task, pid_t pid, pid_t tid);

/* Closes the files that task_sleeps_on() does not need. */
void task_keep_switches(struct task *task);

/* Closes all files. */
void task_close(struct task *task);

/* Whether the thread has ended. False if the files of the thread could not be opened. */
bool task_has_ended(const struct task *task);

/* The CPU on which the thread runs, or ran last; -1 if not known. */
int task_cpu(const struct task *task);

/*
 * Moves the calling thread to the CPU of the thread `task`. The calling thread then keeps that CPU busy. The thread
 * `task` can run only if it has a higher priority, or if the kernel moves it to another CPU. Returns the CPU. Returns
 * -1 if the CPU is not known, if the CPU is not in `cpus`, or if the move fails.
 *   bound  the CPU to which the calling thread is already bound; -1: the calling thread is not bound to a CPU
 */
int task_follow(const struct task *task, const cpu_set_t *cpus, int bound);

/* How many times the thread has been given a CPU since its start; 0: not known. */
uint64_t task_switches(const struct task *task);

/*
 * How much CPU time the thread has used since its start, in nanoseconds. While the thread runs, the kernel updates the time
 * at least at each clock tick. Returns false if the time is not known.
 */
bool task_cpu_ns(const struct task *task, uint64_t *ret);

/*
 * Reads the instruction pointer and the stack pointer that a sleeping thread had when it entered the kernel. Returns
 * false if the thread runs, or if the kernel does not show these values.
 */
bool task_place(const struct task *task, uint64_t *ip, uint64_t *sp);

/*
 * Returns the system call in which the thread sleeps. After a stop, the kernel continues some system calls with
 * restart_syscall(2). If the thread sleeps in restart_syscall(2), and the kernel shows the name of the kernel function
 * in which it sleeps (/proc/PID/task/TID/wchan), this function returns the call that the stop interrupted. `known` of
 * the result is false if the thread runs, if it sleeps but is not in a system call, or if the kernel does not show the
 * system call.
 */
struct system_call task_call(const struct task *task);

struct task_look {
	bool known;	   /* false: the thread does not exist, or the kernel does not show the thread's state */
	uint64_t switches; /* task_switches() */
	bool asleep;	   /* true: the thread waits for something; false: the thread is runnable */
	/* The members below are valid only if `asleep` is true. */
	int syscall;	    /* the number of the system call; -1: not in a system call, or not known */
	bool stopped;	    /* whether a signal (SIGSTOP), a tracer or the cgroup freezer has stopped the thread */
	bool paging;	    /* whether the thread waits for a page of its memory, and is not in a system call */
	bool interruptible; /* whether the sleep is interruptible (state S) */
};

/*
 * Finds out what the thread is doing.
 *   since  the result of an earlier call, or NULL. If the thread was asleep at the earlier call, and did not get a CPU
 *          between the two calls, the function returns `*since`. In this case, the thread still sleeps, or it has woken
 *          up but still waits for a CPU
 */
struct task_look task_look(const struct task *task, const struct task_look *since);

/* Whether the thread is runnable. False if the thread is asleep, or if its state is not known. */
bool task_runs(const struct task *task);

/*
 * Returns true if the thread was asleep at an earlier call of task_look(), and has not run since that call. `since` is
 * the result of the earlier call. The kernel counts how many times a thread gets a CPU (kernel/sched/stats.h,
 * sched_info_arrive()). If this count is still the same as in `since`, the thread has not run. Returns false if the
 * count is not known.
 */
bool task_sleeps_on(const struct task *task, const struct task_look *since);

#endif
