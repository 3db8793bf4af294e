/*
 * Adds to a trace the system call that each thread is in, and what the descriptors of the call are.
 *
 * All of this is read after the pause, so the pause does not get longer. The call of a thread belongs to its stack only
 * if the thread has not run since its stack was copied. To find this out, rbdump uses the kernel's count of how often a
 * thread was given a CPU (target/task.h). If the thread has run, the call is not shown,
 * unless rbdump itself stopped the thread in the call, and the thread is in a call with the same arguments again.
 */
#ifndef RBDUMP_CALLS_H
#define RBDUMP_CALLS_H

#include "base/addresses.h"
#include "session/session.h"
#include "trace/trace.h"

/* Time limits: to read calls and their descriptors, to read tables of sockets, and to search for the ends of pipes. */
#define CALLS_NS   1000000000UL
#define SOCKETS_NS 500000000UL
#define ENDS_NS	   500000000UL

/*
 * Sets `call` of each thread in a trace. Leaves `call` NULL if the thread was in no system call when its stack was
 * copied, if its native thread is not known, or if the kernel does not report the call. For a core, a call has only what
 * is in registers and memory. If there is not enough memory, some calls are missing.
 *   time_limit_s  the time limit (time_limit.h), because a read of the target's memory, or of /proc, might never return; 0: the
 *                 default
 *   trace         the trace of the session's last look
 */
void session_add_calls(const struct session *session, unsigned int time_limit_s, struct trace *trace);

/*
 * For a target that is not stopped: notes which threads sleep, before their stacks are copied. `ret` maps the tid of each
 * sleeping thread to how often the kernel has given the thread a CPU. The caller frees `ret`. If there is not enough
 * memory, some threads are missing in `ret`.
 */
void calls_note_sleepers(pid_t pid, struct address_map *ret);

/* Sets `switches` of each thread in a trace. `sleepers` was noted before the stacks were copied. */
void calls_apply_sleepers(const struct address_map *sleepers, struct trace *trace);

#endif
