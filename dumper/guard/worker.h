/*
 * In an experiment or a recording, rbdump itself does not trace the target. Instead, a child process of rbdump traces
 * the target. This child process is called the worker. An experiment runs in one worker. During the experiment, rbdump
 * itself only waits for the worker, and passes signals on to the worker (see worker_run()). A recording has one worker
 * for each process that it follows.
 *
 * There are two reasons why rbdump uses a worker. First, if ^Z stops a tracer while the tracer has stopped a thread of
 * the target, this thread stays stopped, too. Second, if a tracer is killed while it single-steps its target, the target
 * dies, too (target/tracee.h). An experiment can single-step its target. The worker has its own process group. So ^Z
 * does not reach the worker, and a SIGKILL to rbdump or to rbdump's process group does not kill the worker. When rbdump
 * ends, the kernel sends the worker a signal. The worker then lets the target go on, and ends. The target can still die
 * if the worker itself is killed during a step. For example, the OOM killer may kill the worker, or the worker's whole
 * control group may be killed.
 */
#ifndef RBDUMP_WORKER_H
#define RBDUMP_WORKER_H

#include <sys/types.h>

/*
 * Whether the worker must end. WORKER_FINISH: the worker got SIGINT, SIGTERM, SIGHUP or SIGQUIT, so the worker
 * must report its results so far, and then end. WORKER_ABANDON: the worker's parent process has ended, so the worker
 * must end, too. WORKER_RUN: the worker can go on.
 */
extern _Atomic int worker_stop;

/*
 * The number of signals that the worker has received. Even after worker_stop is set, the worker might still wait until
 * the target ends. The next signal to the worker increases worker_signals. The worker then stops waiting.
 */
extern _Atomic unsigned int worker_signals;

enum { WORKER_RUN = 0, WORKER_FINISH = 1, WORKER_ABANDON = 2 };

/*
 * Starts a worker, calls `work` in the worker, and returns the worker's exit status. If a signal killed the worker, or
 * if the worker cannot be started, prints a message on standard error and returns EXIT_FAILED. Signals that would end
 * rbdump are passed on to the worker. Signals that were ignored when rbdump was started stay ignored.
 */
int worker_run(int (*work)(void *context), void *context);

/*
 * Turns the calling process into a worker. Call this function in the child process, directly after fork().
 *   parent  the process that forked the worker. The parent must have blocked SIGCHLD before the fork, because all
 *           threads of a worker must block SIGCHLD (target/tracee.h)
 */
void worker_begin(pid_t parent);

/*
 * Blocks SIGCHLD, and saves the previous signal mask and signal actions for worker_restore_signals(). Call this function
 * before rbdump changes any signal action.
 */
void worker_block_child_signal(void);

/*
 * Restores the signal actions and the signal mask that rbdump had when it was started. Call this function in a child
 * process that is about to call exec.
 */
void worker_restore_signals(void);

#endif
