/*
 * A process of rbdump that lets a target go if the one that traces it cannot: one that was stopped (SIGSTOP, ^Z) or
 * frozen, or that a debugger has, leaves a thread of its target stopped for as long as that lasts. A kill needs no
 * guard: the kernel lets go what a process has traced when that ends.
 *
 * Each process that traces says in memory that all share since when it has been holding a thread (target/hold.h). The
 * guard looks at that some times a second, and does nothing else. Of a tracer that has held a thread for longer than
 * usual it asks the kernel what that is doing. One that runs, or waits in the kernel, is left alone. One that was
 * stopped is made to go on (SIGCONT), and lets its target go as it always does. One that cannot go on (a debugger has
 * it, its control group is frozen, it is stopped again each time) is killed, and that is said on standard error.
 *
 * The guard is in a process group of its own and blocks all signals. It ends with the process that began it, or, if
 * that is killed, with the last process that traces.
 */
#ifndef RBDUMP_STOP_GUARD_H
#define RBDUMP_STOP_GUARD_H

#include "error.h"

/* Begins a guard, for this process and those that it forks. Called before the process has threads. Fails if there can
 * be none. */
struct error *stop_guard_begin(void);

/* From now on the calling process, or one that was forked from it, traces: it says so. Fails if there is no room. */
struct error *stop_guard_enter(void);

/* It traces no more. */
void stop_guard_leave(void);

/* In the process that began it: if the guard has been killed, another one is begun; if it was stopped, it goes on. */
void stop_guard_keep(void);

/* In the process that began it: ends it. Nothing if there is none. */
void stop_guard_end(void);

#endif
