/*
 * Stops the threads of a live process, and lets them go on.
 *
 * The target survives if rbdump is killed. rbdump uses PTRACE_SEIZE, not PTRACE_ATTACH, so the threads get no signal.
 * If the tracer dies, the kernel lets the threads go on. If a signal (SIGSTOP) had stopped the process before rbdump did,
 * the process stays stopped afterwards.
 *
 * All calls for one target must come from the rbdump thread that stopped the target (a rule of ptrace(2)). The thread
 * that calls live_stop() must block SIGCHLD before the call, because live_stop() waits for SIGCHLD. This thread must
 * keep SIGCHLD blocked until live_resume() has returned.
 */
#ifndef RBDUMP_STOPPING_H
#define RBDUMP_STOPPING_H

#include "target/target.h"

/*
 * Returns the ids of a process's native threads, in ascending order, in a malloc'ed array. On failure, returns NULL,
 * sets *count to 0, and sets errno: ENOENT if the process is gone.
 */
pid_t *live_list_threads(pid_t pid, size_t *count);

/* The id of a native thread in its innermost pid namespace (proc(5), NSpid); 0 if not known. */
pid_t live_inner_id(pid_t pid, pid_t tid);

/*
 * The number of pid namespaces in which a process has a pid, counted from the pid namespace of /proc; 0 if not known.
 */
size_t live_pid_level(pid_t pid);

/*
 * The pid of a process in one of its pid namespaces. If `level` is the result of live_pid_level() for an ancestor of
 * the process, returns the pid under which this ancestor sees the process. Returns 0 if not known.
 */
pid_t live_id_at_level(pid_t pid, size_t level);

/*
 * Checks whether the kernel would let rbdump stop the target's main thread. Does not stop the thread. Call this
 * function to notice a refusal early: live_stop() notices a refusal only when it has to stop a thread. If the kernel
 * refuses the stop, fails with the same error as live_stop(). Also fails if rbdump cannot start a thread of its own for
 * the check.
 */
struct error *live_check_stopping(const struct target *target);

/*
 * Stops all threads of the target, and reads their registers. If a thread is in an uninterruptible sleep, or does not
 * stop within half a second, the thread is listed as not stopped. This thread then stays seized until the calling
 * thread ends. If the kernel refuses to stop a thread, for example because another tracer has it, the thread is listed
 * as refused. Fails if the kernel refuses to stop the main thread, if every thread was refused, if the threads cannot be
 * listed, or if there is not enough memory. On failure, lets the target go on.
 *   leave_sleepers  if true, threads that sleep in a system call are not stopped (target/sleeper.h). But if an earlier
 *                   call to live_woke() found out that a thread had woken up, this thread is always stopped
 */
struct error *live_stop(struct target *target, bool leave_sleepers);

/*
 * Whether a thread that live_stop() left asleep has woken up since live_stop(). If a thread has woken up, the memory
 * that was read is not a snapshot of one moment. In this case, later calls to live_stop() stop the thread even if it
 * sleeps again. Call this function before live_resume().
 */
bool live_woke(struct target *target);

/*
 * Detaches from every stopped thread. Each thread then goes on, and gets the signal that it was about to take. Does
 * nothing if the target is not stopped.
 */
void live_resume(struct target *target);

#endif
