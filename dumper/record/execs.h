/*
 * Finds out which processes on this machine have called exec. When a process calls exec, the kernel writes a report to
 * shared memory (perf_event_open(2), PERF_RECORD_COMM). rbdump can read the reports from this memory without a system
 * call. So rbdump does not need a system call for each process on the machine.
 *
 * Only one thread of rbdump may use a struct execs at a time.
 */
#ifndef RBDUMP_EXECS_H
#define RBDUMP_EXECS_H

#include <stdbool.h>
#include <sys/types.h>

struct execs;

/*
 * Begins to receive reports of execs. Returns NULL if the kernel does not allow rbdump to receive such reports
 * (kernel.perf_event_paranoid, CAP_PERFMON), or if there is not enough memory.
 */
struct execs *execs_create(void);
void execs_destroy(struct execs *execs); /* NULL is fine */

/* Receives the pid of a process that has called exec. The pid is a number in rbdump's own pid namespace. */
typedef void execs_told(void *context, pid_t pid);

/*
 * Calls `told` for each process that has called exec since the last call of execs_take(). Returns false if reports may
 * be missing, because `execs` is NULL or because the kernel had no room for all reports. Does not notice an exec on a
 * CPU that came online after execs_create() was called.
 */
bool execs_take(struct execs *execs, execs_told *told, void *context);

#endif
