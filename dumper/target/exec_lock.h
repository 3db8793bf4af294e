/*
 * Prevents a deadlock on a kernel lock (cred_guard_mutex). PTRACE_SEIZE waits for this lock while a thread of the
 * target is calling exec (kernel/ptrace.c, ptrace_attach()).
 *
 * A thread that calls exec takes this lock, and then waits until all other threads of its process have ended. A traced
 * thread counts as ended only after its tracer has called waitpid() for the thread (fs/exec.c, de_thread()). So a
 * tracer that has seized one thread could deadlock when it seizes the next thread. To prevent this deadlock, a timer
 * sends a signal that interrupts PTRACE_SEIZE. The signal handler reaps the traced threads that have ended.
 *
 * Each process of rbdump has only one tracing thread at a time.
 */
#ifndef RBDUMP_EXEC_LOCK_H
#define RBDUMP_EXEC_LOCK_H

#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "target/target.h"

struct exec_lock {
	bool watched;
	timer_t timer;
	sigset_t signals;	 /* the signal mask before exec_lock_watch() */
	struct sigaction action; /* the action of the timer's signal before exec_lock_watch() */
};

/*
 * Starts the timer. Call this function before the calling thread seizes threads. If the timer cannot be created, a
 * deadlock remains possible.
 */
void exec_lock_watch(struct exec_lock *lock);

/* Stops the timer. Call this function after the threads have been seized. */
void exec_lock_forget(struct exec_lock *lock);

/*
 * Seizes a thread (PTRACE_SEIZE). Call this function between exec_lock_watch() and exec_lock_forget(). Returns 0 on
 * success. On failure, returns the errno that PTRACE_SEIZE set. If an already seized thread ends during the call, the
 * signal handler reaps that thread. For the reaped thread, stop_look() later returns STOP_GONE.
 */
int exec_lock_seize(const struct target *target, pid_t tid);

#endif
