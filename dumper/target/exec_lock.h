/*
 * The lock that PTRACE_SEIZE waits for while a thread of the process calls exec (kernel/ptrace.c, ptrace_attach():
 * cred_guard_mutex).
 *
 * Who calls exec holds it, and waits until all other threads of its process have ended; those that are traced have only
 * when their tracer has seen it (fs/exec.c, de_thread()). A tracer that has seized one thread and is about to seize the
 * next would thus wait for itself. Between these two calls it does not: a timer interrupts its wait, and the ends of
 * what it traces are seen.
 */
#ifndef RBDUMP_EXEC_LOCK_H
#define RBDUMP_EXEC_LOCK_H

#include <signal.h>
#include <stdbool.h>
#include <time.h>

struct exec_lock {
	bool watched;
	timer_t timer;
	sigset_t before;
};

/*
 * The calling thread is about to seize threads. It has no children of its own whose ends anybody waits for. If there is
 * no timer to be had, it may wait for itself.
 */
void exec_lock_watch(struct exec_lock *lock);

/* It has seized them. What has ended meanwhile is gone for who waits for it (stop.h: STOP_GONE). */
void exec_lock_forget(struct exec_lock *lock);

#endif
