/*
 * Native threads that rbdump need not stop, because they sleep in a system call. A sleeping thread does not run until
 * it is woken up, and the kernel can later tell whether the thread has run. A stop would wake the thread up, and some
 * system calls would then return EINTR to the program (doc/internals.md lists these calls).
 */
#ifndef RBDUMP_SLEEPER_H
#define RBDUMP_SLEEPER_H

#include "target/target.h"

/*
 * Finds out whether a thread of a live process sleeps. rbdump does not need to stop a sleeping thread. True if the thread
 * sleeps in a system call, and thread_pointer() finds its thread pointer. If true, *ret receives the thread. *ret then
 * has an open file, which sleeper_forget() closes. False if a signal has stopped the thread, or if the thread is in an
 * uninterruptible sleep. In both cases, rbdump learns more about the thread when it tries to stop the thread. Also
 * false if the thread's files cannot be opened (RLIMIT_NOFILE).
 */
bool sleeper_find(struct target *target, pid_t tid, struct native_thread *ret);

/* Whether the thread has slept without a break since sleeper_find(). */
bool sleeper_slept_on(const struct native_thread *thread);

/* Closes the file that sleeper_find() opened. Does nothing if no file is open. */
void sleeper_forget(struct native_thread *thread);

#endif
