/*
 * What /proc/PID/stat says of a process or a thread (proc(5)).
 */
#ifndef RBDUMP_PROCESS_STAT_H
#define RBDUMP_PROCESS_STAT_H

#include <stdbool.h>
#include <sys/types.h>

struct process_stat {
	char state;  /* R, S, D, Z, … */
	bool ending; /* it is on its way out of the kernel: it has no memory any more, or soon */
};

/*
 *   proc  where procfs is: "/proc", or a tree of files like it
 *   id    of a process or a thread
 * Returns false if there is none such.
 */
bool process_stat_read(const char *proc, pid_t id, struct process_stat *ret);

#endif
