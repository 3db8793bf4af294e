/*
 * The guard is a process of rbdump. The guard makes sure that a target goes on even if the target's tracer gets stuck.
 * A tracer is stuck if it is stopped (SIGSTOP, ^Z), frozen, or held by a debugger. If a tracer gets stuck while it
 * holds a thread of its target, the thread stays stopped as long as the tracer is stuck. If a tracer is killed, no
 * guard is needed: when a tracer ends, the kernel lets the tracer's targets go on.
 *
 * When a tracer begins to hold a thread, the tracer writes the current time to shared memory (target/hold.h). The guard
 * reads this shared memory 50 times per second. If no thread was held during the last second, the guard sleeps until a
 * tracer begins to hold a thread, but for at most one second. Most of the time, the guard only sleeps or reads the
 * shared memory. If a tracer holds a thread for more than 40 ms, the guard asks the kernel what the tracer is doing. If
 * the tracer is running, or is waiting in the kernel, the guard does nothing. If the tracer is stopped, the guard sends
 * SIGCONT to the tracer. The tracer then lets its target go on as usual. The guard kills the tracer in three cases: a
 * debugger keeps the tracer stopped, the tracer's control group is frozen, or the tracer was stopped again after each
 * of ten SIGCONTs. After the guard has killed a tracer, the guard prints a message on standard error.
 *
 * The guard has its own process group, and blocks all signals. The process that started the guard kills the guard at
 * the end (stop_guard_end()). If that process ends without killing the guard, the guard ends when the last tracer has
 * ended.
 */
#ifndef RBDUMP_STOP_GUARD_H
#define RBDUMP_STOP_GUARD_H

#include "base/error.h"

/*
 * Starts a guard for the calling process and for the processes that it forks. The guard watches only the processes that
 * call stop_guard_enter(). Call this function while the process has only one thread. Fails if the guard cannot be
 * started.
 */
struct error *stop_guard_begin(void);

/*
 * Registers the calling process as a tracer that the guard watches. Does nothing if there is no guard. There is a guard
 * only if the calling process or one of its ancestors has called stop_guard_begin(). Fails if too many tracers are
 * registered, or if /proc/PID/stat of the calling process cannot be read. In the process that started the guard, also
 * fails if the guard has ended and stop_guard_keep() could not start another one.
 */
struct error *stop_guard_enter(void);

/* Removes the calling process from the list of registered tracers. */
void stop_guard_leave(void);

/*
 * Starts a new guard if the guard was killed. Sends SIGCONT to the guard if the guard was stopped. If no guard can be started,
 * checks all tracers once, as the guard would do. After a guard has ended, the first failed attempt to start another one also
 * prints a message on standard error. Each further call tries again to start a guard, and if this fails, checks all tracers
 * again. So call this function often. Only the process that started the guard can use this function. In all other processes,
 * the function does nothing.
 */
void stop_guard_keep(void);

/*
 * Ends the guard, unless a registered tracer still exists. A tracer that has ended does not count, even if it has not
 * called stop_guard_leave(). Does nothing if there is no guard, or if another process started the guard.
 */
void stop_guard_end(void);

#endif
