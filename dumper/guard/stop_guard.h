/*
 * The guard: a process of rbdump that lets a target go on if its tracer cannot do so. A tracer can be stopped (SIGSTOP,
 * ^Z), frozen, or held by a debugger. If this happens while the tracer holds a thread of its target, the thread stays
 * stopped until the tracer runs again. If a tracer is killed, no guard is needed: when a tracer ends, the kernel lets
 * its targets go on.
 *
 * A tracer that begins to hold a thread writes the time to shared memory (target/hold.h). Most of the time, the
 * guard only reads that memory, 50 times per second. If a tracer holds a thread for longer than usual, the guard asks
 * the kernel what the tracer is doing. If the tracer is running, or is waiting in the kernel, the guard does nothing.
 * If the tracer is stopped, the guard continues it (SIGCONT), and the tracer lets its target go on as usual. The guard
 * kills the tracer if a debugger keeps it stopped, if its control group is frozen, or if it is stopped again after each
 * SIGCONT. The guard then prints a message on standard error.
 *
 * The guard is in a process group of its own and blocks all signals. The process that started the guard also ends it.
 * If that process ends first, the guard ends when the last tracer has ended.
 */
#ifndef RBDUMP_STOP_GUARD_H
#define RBDUMP_STOP_GUARD_H

#include "base/error.h"

/*
 * Starts a guard for this process and the processes that it forks. Call this function before the process has other
 * threads. Fails if the guard cannot be started.
 */
struct error *stop_guard_begin(void);

/*
 * Registers the calling process as a tracer that the guard watches. Does nothing if there is no guard, because neither
 * this process nor any of its ancestors has called stop_guard_begin(). Fails if too many tracers are registered, or if
 * /proc/PID/stat of the process cannot be read.
 */
struct error *stop_guard_enter(void);

/* Removes the calling process from the registered tracers. */
void stop_guard_leave(void);

/*
 * Starts a new guard if the guard was killed, and continues the guard if it was stopped. Does nothing in a process that
 * did not start the guard.
 */
void stop_guard_keep(void);

/*
 * Ends the guard, unless a tracer is still registered. Does nothing if there is no guard, or if another process started
 * it.
 */
void stop_guard_end(void);

#endif
