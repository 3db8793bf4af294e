/*
 * Which processes of the machine have become other programs. The kernel tells of it as it happens
 * (perf_event_open(2), PERF_RECORD_COMM), so that to ask takes no system call, however many processes are waited for.
 *
 * Belongs to one thread of rbdump at a time.
 */
#ifndef RBDUMP_EXECS_H
#define RBDUMP_EXECS_H

#include <stdbool.h>
#include <sys/types.h>

struct execs;

/* NULL if the kernel does not allow it (kernel.perf_event_paranoid, CAP_PERFMON), or out of memory. */
struct execs *execs_create(void);
void execs_destroy(struct execs *execs); /* NULL is fine */

/* A process, in rbdump's own pid namespace, that has called exec. */
typedef void execs_told(void *context, pid_t pid);

/*
 * Tells of each that has since this was asked last. Returns false if there may be others: `execs` is NULL, or there was
 * no room to tell of all. On a CPU that came to be later, none is noticed.
 */
bool execs_take(struct execs *execs, execs_told *told, void *context);

#endif
