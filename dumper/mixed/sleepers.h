/*
 * Decides which sleeping threads of a process must be stopped, so that their native stacks can be unwound.
 *
 * If a thread sleeps in a system call, the kernel tells its instruction pointer and its stack pointer without a stop. This
 * is enough to unwind most stacks: a function that uses another register has first saved its caller's value of this
 * register. A stop would end some system calls (target/sleeper.h). So a sleeping thread is stopped only if rbdump has tried
 * to follow its stack before, and could not do so without the other registers.
 */
#ifndef RBDUMP_SLEEPERS_H
#define RBDUMP_SLEEPERS_H

#include "mixed/native_walk.h"

/* A thread whose stack was copied while it slept. */
struct sleeper {
	pid_t tid;
	uint64_t switches; /* how many times the thread had been given a CPU before the copy */
};

/* The threads in ascending order of their tids. Their copies have the same indexes. A zeroed struct is empty. */
struct sleepers {
	struct sleeper *of;
	size_t count, capacity;
};

void sleepers_clear(struct sleepers *sleepers);

/*
 * Returns the index of the copy of a thread's stack. Returns SIZE_MAX if there is none, if the thread is not asleep, or if
 * it has run since the copy.
 */
size_t sleepers_find(const struct sleepers *sleepers, const struct native_thread *thread);

/*
 * Drops all earlier copies, and copies the stacks of sleeping threads. This happens before the process is stopped, so these
 * copies do not make the pause longer. Adds the threads that must be stopped to `restless` of the target. Returns false if
 * there is not enough memory.
 */
bool sleepers_copy(const struct native_walker *walker, struct sleepers *ret);

#endif
