/*
 * The experiment runs in a child process, the worker; rbdump itself only waits for it, and passes signals on.
 *
 * Why: a tracer that dies while a thread is being single-stepped takes its target with it (target/tracee.h). A kill -9
 * of rbdump hits the process that its user sees; the worker is told by the kernel, lets the target go on and ends.
 */
#ifndef RBDUMP_GUARD_H
#define RBDUMP_GUARD_H

/* Set once the worker is to end: SIGINT and SIGTERM end it early, with what there is; 2 if rbdump is gone. */
extern volatile int guard_stop;

enum { GUARD_RUN = 0, GUARD_FINISH = 1, GUARD_ABANDON = 2 };

/*
 * Runs `work` in a child process and returns its exit status; a worker that a signal killed is EXIT_FAILED. Signals
 * that would end rbdump are passed on to the worker.
 */
int guard_run(int (*work)(void *context), void *context);

#endif
