/*
 * Native threads that need no stop, because they sleep in a system call. A sleeping thread does not run until it is
 * woken up, and the kernel can later tell whether the thread has run. A stop would wake the thread up, and some system
 * calls would then return EINTR to the program (doc/internals.md lists these calls).
 */
#ifndef RBDUMP_SLEEPER_H
#define RBDUMP_SLEEPER_H

#include "target/target.h"

/*
 * Whether a thread of a live process needs no stop. True if the thread sleeps in a system call, and if its thread
 * pointer is known without a stop. If true, *ret receives the thread, with an open file that sleeper_forget() closes.
 * False if the thread was stopped by a signal, or is in an uninterruptible sleep, because an attempt to stop such a
 * thread tells more about the thread. Also false if the thread's files cannot be opened (RLIMIT_NOFILE).
 */
bool sleeper_find(struct target *target, pid_t tid, struct native_thread *ret);

/* Whether the thread has slept without a break since sleeper_find(). */
bool sleeper_slept_on(const struct native_thread *thread);

/* Closes the file that sleeper_find() opened. Does nothing if no file is open. */
void sleeper_forget(struct native_thread *thread);

#endif
