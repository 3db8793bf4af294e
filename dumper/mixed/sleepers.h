/*
 * Decides which sleeping threads of a process must be stopped, so that their native stacks can be unwound.
 *
 * If a thread sleeps in a system call, rbdump can get its instruction pointer and its stack pointer from the kernel,
 * without stopping the thread. These two registers are enough to unwind most stacks: before a function uses another
 * register, it saves the caller's value of that register on the stack. A stop would end some system calls
 * (target/sleeper.h). So rbdump stops a sleeping thread for its registers only if rbdump has already tried to follow
 * the thread's stack without a stop, and has failed because another register was needed.
 */
#ifndef RBDUMP_SLEEPERS_H
#define RBDUMP_SLEEPERS_H

#include "mixed/native_walk.h"

/* A thread whose stack was copied while it slept. */
struct sleeper {
	pid_t tid;
	uint64_t switches; /* how many times the thread had begun to run on a CPU before the copy was made */
};

/*
 * The threads in ascending order of their tids. The copy of the stack of the thread `of[i]` has the index i in `stacks`
 * of struct native_walker. A zeroed struct is empty.
 */
struct sleepers {
	struct sleeper *of;
	size_t count, capacity;
};

void sleepers_clear(struct sleepers *sleepers);

/*
 * Returns the index of the copy of a thread's stack. Returns SIZE_MAX if there is no copy, if the thread is not asleep,
 * or if the thread has run since the copy was made.
 */
size_t sleepers_find(const struct sleepers *sleepers, const struct native_thread *thread);

/*
 * Drops all earlier copies, and copies the stacks of sleeping threads. Call this function before the process is
 * stopped, so that these copies do not make the pause longer. If a thread must be stopped so that its stack can be
 * unwound, adds the thread to `restless` of the target. Returns false if there is not enough memory.
 */
bool sleepers_copy(const struct native_walker *walker, struct sleepers *ret);

#endif
