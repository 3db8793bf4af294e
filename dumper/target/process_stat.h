/*
 * Reads /proc/PID/stat and /proc/PID/status of a process or a thread (proc(5)).
 */
#ifndef RBDUMP_PROCESS_STAT_H
#define RBDUMP_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
	char name[64]; /* the kernel's name for the process or thread: any bytes except NUL */
	char state;    /* the state of the process or thread: R, S, D, Z, … */
	bool ending;   /* the process or thread is exiting (PF_EXITING): its memory is gone, or will soon be gone */
	bool ended;    /* the process or thread has ended: it is a zombie, or dead */
	bool kernel;   /* a thread of the kernel itself (PF_KTHREAD), which has no program */
	pid_t parent;
	uint64_t started; /* start time in clock ticks since boot; id and start time together identify a process */
};

/*
 * Reads the stat file of a process or a thread.
 *   proc  the folder that contains the file ID/stat. The folder can be procfs ("/proc"), a folder with the same
 *         structure, or a folder of threads (/proc/PID/task)
 *   id    the id of a process or a thread
 * Returns false if there is no such process or thread, or if the file cannot be read.
 */
bool process_stat_read(const char *proc, pid_t id, struct process_stat *ret);

/*
 * Returns the pid of a thread's process, from the thread's status file. If `id` is the pid of a process, returns `id`.
 * Returns 0 if there is no such thread or process.
 */
pid_t process_stat_process(const char *proc, pid_t id);

/* The state of a thread (field 3 of its stat file); 0 if the file cannot be read. `fd` is the open stat file. */
char process_stat_state(int fd);

/* The tid of the thread that traces a process or a thread; 0 if there is no tracer. */
pid_t process_stat_tracer(const char *proc, pid_t id);

/*
 * Returns the CPU on which a thread runs, or ran last (field 39 of its stat file). `fd` is the open stat file. Returns
 * -1 if the file cannot be read, for example because the thread has ended, or because `fd` is -1.
 */
int process_stat_cpu(int fd);

#endif
