/*
 * Native threads that need not be stopped, since they sleep in a system call: they stand still, and stay so unless they
 * are woken up, which the kernel tells afterwards. To stop one wakes it up, and some system calls then return EINTR to
 * the program (doc/internals.md has which).
 */
#ifndef RBDUMP_SLEEPER_H
#define RBDUMP_SLEEPER_H

#include "target/target.h"

/*
 * Whether a thread of a live process sleeps in a system call, and all is known of it that a stop would tell: then *ret
 * receives that, to be given to sleeper_forget(). Not one that was stopped by a signal, or cannot be interrupted: of
 * those a tracer knows more. Nor one for which there is no file to be had (RLIMIT_NOFILE).
 */
bool sleeper_find(struct target *target, pid_t tid, struct native_thread *ret);

/* Whether it has slept on since. */
bool sleeper_slept_on(const struct native_thread *thread);

/* Closes the file that tells. */
void sleeper_forget(struct native_thread *thread);

#endif
