/*
 * Stopping the threads of a live process, and letting them go on.
 *
 * The target survives whatever happens to rbdump: threads are seized, not attached to, so that nothing is sent to them,
 * and the kernel lets them go on if the tracer dies. A process that was stopped (SIGSTOP) before stays stopped.
 *
 * All calls for one target come from the thread that stopped it (a rule of ptrace(2)). It has SIGCHLD blocked from
 * before live_stop(), which waits for it, until after live_resume().
 */
#ifndef RBDUMP_STOPPING_H
#define RBDUMP_STOPPING_H

#include "target/target.h"

/*
 * Ids of a process's native threads, in ascending order, malloc'ed; NULL and 0 with errno if there are none to be had:
 * ENOENT if the process is gone.
 */
pid_t *live_list_threads(pid_t pid, size_t *count);

/* What a native thread is called in the innermost pid namespace that it is in (proc(5), NSpid); 0 if not known. */
pid_t live_inner_id(pid_t pid, pid_t tid);

/*
 * Whether the kernel lets rbdump stop the first thread of the target, without stopping it: for who will stop threads
 * later, since live_stop() finds out only if there is a thread to stop. Fails as live_stop() does.
 */
struct error *live_check_stopping(const struct target *target);

/*
 * Stops every thread of the target and takes its registers. A thread that is in an uninterruptible sleep, or does not
 * stop within half a second, is left, and marked; it stays seized until the calling thread ends. One that the kernel
 * refuses, because another tracer has it, is listed as refused. Fails, with the target going on, if the kernel refuses
 * the main thread, or all that there are; or if its threads cannot be listed, or kept in mind.
 *   leave_sleepers  true: a thread that sleeps in a system call is not stopped (target/sleeper.h), unless live_woke()
 *                   has seen it wake up before
 */
struct error *live_stop(struct target *target, bool leave_sleepers);

/*
 * Whether a thread that live_stop() left asleep has woken up since: then what was read is not of one moment. The next
 * live_stop() stops that thread. Called before live_resume().
 */
bool live_woke(struct target *target);

/* Lets every thread go on, with the signal that it was about to get, and gives up tracing. Nothing if not stopped. */
void live_resume(struct target *target);

#endif
