/*
 * The lock that PTRACE_SEIZE waits for while a thread of the process calls exec (kernel/ptrace.c, ptrace_attach():
 * cred_guard_mutex).
 *
 * Who calls exec holds it, and waits until all other threads of its process have ended; those that are traced have only
 * when their tracer has seen it (fs/exec.c, de_thread()). A tracer that has seized one thread and is about to seize the
 * next would thus wait for itself. Here it does not: a timer interrupts its wait, and the ends of what it traces are
 * seen.
 *
 * At most one thread of a process traces at a time.
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
	sigset_t signals;	 /* that were blocked */
	struct sigaction action; /* of the timer's signal, before */
};

/* The calling thread is about to seize threads. If there is no timer to be had, it may wait for itself. */
void exec_lock_watch(struct exec_lock *lock);

/* It has seized them. */
void exec_lock_forget(struct exec_lock *lock);

/*
 * PTRACE_SEIZE of a thread, between those two. Returns 0, or the errno with which the kernel refuses it. Whatever of
 * the target's threads has ended while it was waited for is gone for who waits for it (stop.h: STOP_GONE).
 */
int exec_lock_seize(const struct target *target, pid_t tid);

#endif
