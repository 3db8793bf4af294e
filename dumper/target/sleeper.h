/*
 * Finds native threads that sleep in a system call. rbdump does not need to stop these threads. A sleeping thread does
 * not run until it is woken up, and the kernel can later show whether the thread has run. A stop would wake the thread
 * up, and some system calls would then return EINTR to the program (doc/internals.md lists these calls).
 */
#ifndef RBDUMP_SLEEPER_H
#define RBDUMP_SLEEPER_H

#include "target/target.h"

/*
 * Finds out whether a thread of a live process sleeps. If the thread sleeps, rbdump does not need to stop it. Returns
 * true if the thread sleeps in a system call, and if thread_pointer() finds its thread pointer. In this case, *ret
 * receives the thread. *ret then has an open file, which sleeper_forget() closes. Returns false if a signal has stopped
 * the thread, or if the thread is in an uninterruptible sleep. In both cases, rbdump should try to stop the thread,
 * because rbdump then learns more about the thread. Also returns false if the thread's files cannot be opened
 * (RLIMIT_NOFILE). If the function returns false because the thread is in an uninterruptible sleep in a system call, it
 * sets `ret->switches`. If the function returns false for any other reason, `ret->switches` is 0.
 */
bool sleeper_find(struct target *target, pid_t tid, struct native_thread *ret);

/* Whether the thread has slept without interruption since sleeper_find(). */
bool sleeper_slept_on(const struct native_thread *thread);

/* Closes the file that sleeper_find() opened. Does nothing if no file is open. */
void sleeper_forget(struct native_thread *thread);

#endif
