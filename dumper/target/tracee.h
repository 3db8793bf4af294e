/*
 * One native thread of a target, stopped for a moment.
 *
 * A thread is seized for each stop and given up after it: between two stops nothing of the target is traced, its
 * signals take their usual way, and whatever happens to rbdump then does not touch it. All calls for one stop come from
 * one thread of rbdump (a rule of ptrace(2)), which has SIGCHLD blocked.
 *
 * A thread that is single-stepped has its trap flag set until tracee_resume(). If its tracer dies meanwhile, the kernel
 * does not clear the flag, and the target is killed by the next trap (kernel/ptrace.c, exit_ptrace(), does without
 * ptrace_disable()): who steps must be a process that nobody kills; see supervise/guard.h.
 */
#ifndef RBDUMP_TRACEE_H
#define RBDUMP_TRACEE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/user.h>

#include "error.h"

struct tracee {
	pid_t pid, tid; /* pid: of its process */
	long awake_us;	/* as given to tracee_stop() */
	bool seized, stopped;
	int pending_signal; /* was about to be delivered; is delivered when the thread goes on */
	bool reaped;	    /* it has ended, and nobody else is told how: if it is a child of ours, not even as that */
	int status;	    /* then: as waitpid() gives it */
	struct user_regs_struct registers; /* as read last */
};

enum tracee_result {
	TRACEE_STOPPED,
	TRACEE_GONE,	/* it has ended, or become another program */
	TRACEE_REFUSED, /* the kernel does not allow it: another tracer, say */
	TRACEE_TIMEOUT, /* it did not stop in time: it is in an uninterruptible sleep */
};

/*
 * Seizes and stops a thread. Whatever comes of it, tracee_resume() ends it.
 *   awake_us    how long to look for a stop, this one and that of each step, before going to sleep until it comes; 0
 *               if the caller may be on the thread's own CPU
 *   timeout_us  how long to wait for the stop
 */
enum tracee_result tracee_stop(pid_t pid, pid_t tid, long awake_us, long timeout_us, struct tracee *ret);

/*
 * Takes the registers of a stopped thread; false if it has ended. The kernel waits for the thread to be off its CPU
 * before it tells them: so they are better read after its memory, which does not change any more.
 */
bool tracee_read_registers(struct tracee *tracee);

/*
 * Lets a stopped thread run one instruction, and takes its registers again. Returns false if it did not come to that: a
 * signal is due (it is kept, and no step may follow), or it has ended. It takes as long as the instruction does: a
 * thread that is frozen, or waits for a page of a dead disk, is waited for as long as it lives, since it cannot be
 * given up.
 */
bool tracee_step(struct tracee *tracee);

/* Lets the thread go on, with the signal that it was about to get, and gives up tracing it. */
void tracee_resume(struct tracee *tracee);

#endif
