/*
 * Targets are traced by a child process of rbdump's, a worker. An experiment as a whole is one: rbdump itself only
 * waits for it, and passes signals on (guard_run()). A recording has one for each process that it follows.
 *
 * Why: a tracer that is stopped (^Z) leaves a thread stopped that it holds, and one that dies while it single-steps, as
 * an experiment may be asked to, takes its target with it (target/tracee.h). A kill -9 of rbdump, or of its process
 * group, hits the process that its user sees; the worker, in a group of its own, is told by the kernel, lets the target
 * go on and ends. What kills the worker itself in the middle of a step (the OOM killer, the kill of a whole control
 * group) can still take the target with it.
 */
#ifndef RBDUMP_GUARD_H
#define RBDUMP_GUARD_H

#include <sys/types.h>

/* Set once the worker is to end: SIGINT and SIGTERM end it early, with what there is; 2 if rbdump is gone. */
extern _Atomic int guard_stop;

/* How many signals the worker has had: who waits for something after guard_stop was set looks for one more. */
extern _Atomic unsigned int guard_signals;

enum { GUARD_RUN = 0, GUARD_FINISH = 1, GUARD_ABANDON = 2 };

/*
 * Runs `work` in a child process and returns its exit status; a worker that a signal killed is EXIT_FAILED. Signals
 * that would end rbdump are passed on to the worker; those that it was started to ignore are left alone.
 */
int guard_run(int (*work)(void *context), void *context);

/*
 * Makes a worker of a process that has just been forked.
 *   parent  who has forked it, and has SIGCHLD blocked: a worker's threads must have it so (target/tracee.h)
 */
void guard_become_worker(pid_t parent);

/* Blocks SIGCHLD, and keeps what was blocked before for guard_restore_signals(). */
void guard_block_child_signal(void);

/* In a child that is to become a program: gives it the signals that rbdump was started with, and those
 * blocked. */
void guard_restore_signals(void);

#endif
