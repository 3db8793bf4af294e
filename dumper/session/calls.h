/*
 * Adds data to a trace: the system call that each thread is in, and a description of each descriptor of the call.
 *
 * The calls and the descriptors are read after the pause of the target, so the pause does not get longer. The call that
 * is read for a thread belongs to the copied stack of the thread only if the thread has not run since the copy. To find
 * out whether the thread has run, rbdump uses the kernel's count of how often a thread was given a CPU (target/task.h).
 * If the thread has run, the call is not shown. There is one exception: if rbdump itself stopped the thread in a call,
 * and the thread is in a call with the same arguments again, this call is shown.
 */
#ifndef RBDUMP_CALLS_H
#define RBDUMP_CALLS_H

#include "base/addresses.h"
#include "session/session.h"
#include "trace/trace.h"

/*
 * Time limits in ns: for reading calls and their descriptors, for reading tables of sockets, and for finding the
 * processes that have the other ends of pipes, FIFOs and sockets.
 */
#define CALLS_NS   1000000000UL
#define SOCKETS_NS 500000000UL
#define ENDS_NS	   500000000UL

/*
 * Sets `call` of each thread in a trace. Leaves `call` NULL if the thread was not in a system call when its stack was
 * copied, if its native thread is not known, or if the kernel does not report the call. For a core, a call has only the
 * data from the core's registers and memory. If there is not enough memory, some calls are missing.
 *   time_limit_s  the time limit (time_limit.h); 0: the default. A limit is needed because a read of the target's
 *                 memory, or of /proc, might never return
 *   trace         the trace of the session's last look
 */
void session_add_calls(const struct session *session, unsigned int time_limit_s, struct trace *trace);

/*
 * Notes which threads of a target sleep. If the target is not stopped, call this function before the stacks are copied.
 * For each sleeping thread, `ret` maps the tid to the number of times that the kernel has given the thread a CPU. The
 * caller frees `ret`. If there is not enough memory, some threads are missing from `ret`.
 */
void calls_note_sleepers(pid_t pid, struct address_map *ret);

/* Sets `switches` of each thread in a trace. `sleepers` comes from calls_note_sleepers(). */
void calls_apply_sleepers(const struct address_map *sleepers, struct trace *trace);

#endif
