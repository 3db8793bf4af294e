/*
 * What /proc/PID/stat says of a process or a thread (proc(5)).
 */
#ifndef RBDUMP_PROCESS_STAT_H
#define RBDUMP_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
	char name[64]; /* what the kernel calls it, any bytes but NUL */
	char state;    /* R, S, D, Z, … */
	bool ending;   /* it is on its way out of the kernel: it has no memory any more, or soon */
	bool ended;    /* it is out, and waits for its parent to notice */
	pid_t parent;
	uint64_t started; /* in clock ticks since the system started: with its number, it means one process for ever */
};

/*
 *   proc  where procfs is: "/proc", a tree of files like it, or the folder of the threads of a process, /proc/PID/task
 *   id    of a process or a thread
 * Returns false if there is none such.
 */
bool process_stat_read(const char *proc, pid_t id, struct process_stat *ret);

/* The process that a thread is of, by its status file: itself if it is one. 0 if there is none such. */
pid_t process_stat_process(const char *proc, pid_t id);

/* The state of a thread, field 3 of its stat file, which is open as `fd`; 0 if that cannot be read. */
char process_stat_state(int fd);

/* The thread that traces a process or a thread; 0 if there is none. */
pid_t process_stat_tracer(const char *proc, pid_t id);

/*
 * The CPU that a thread runs on, or last ran on: field 39 of its stat file, which is open as `fd`. -1 if that cannot be
 * read: there is no such thread any more, or `fd` is -1.
 */
int process_stat_cpu(int fd);

#endif
