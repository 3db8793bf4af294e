/*
 * Stops one native thread of a target for a moment.
 *
 * For each stop, rbdump seizes the thread, and afterwards detaches from it. Between two stops, the target is not
 * traced. During this time, the target gets its signals as usual, and nothing that happens to rbdump affects the
 * target. All calls for one stop must come from one rbdump thread (a rule of ptrace(2)). SIGCHLD must be blocked in
 * this thread.
 *
 * After a single step, the trap flag of the thread stays set until tracee_resume() clears it. If the tracer dies before
 * it calls tracee_resume(), the flag stays set, because exit_ptrace() (kernel/ptrace.c) does not call ptrace_disable().
 * In that case, the next trap kills the target. So only a worker may single-step a thread. If rbdump is killed, the
 * worker survives, and can still detach from the thread (guard/worker.h).
 */
#ifndef RBDUMP_TRACEE_H
#define RBDUMP_TRACEE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"

struct tracee {
	pid_t pid, tid; /* `pid` is the pid of the thread's process */
	long awake_us;	/* the value of the argument `awake_us` of tracee_stop() */
	bool seized, stopped;
	int pending_signal; /* the signal that the thread gets when it goes on; 0: none */
	/* The thread has ended, and was reaped. If it was a child of rbdump, a later waitpid() does not get its status. */
	bool reaped;
	int status;			   /* if `reaped`: the wait status that waitpid() gave */
	struct user_regs_struct registers; /* as last read */
};

enum tracee_result {
	TRACEE_STOPPED,
	TRACEE_GONE,	/* the thread has ended, or its process has called exec */
	TRACEE_REFUSED, /* the kernel refuses to seize the thread, for example because another tracer has it */
	TRACEE_TIMEOUT, /* the thread did not stop in time, for example because it is in an uninterruptible sleep */
};

/*
 * Seizes and stops a thread. Always call tracee_resume() afterwards, even if the thread did not stop.
 *   awake_us    how long to spin, in microseconds. When this function or tracee_step() waits for a stop, it first spins
 *               for this time, and then sleeps. Pass 0 if the caller might run on the same CPU as the thread
 *   timeout_us  how long to wait for the stop, in microseconds
 */
enum tracee_result tracee_stop(pid_t pid, pid_t tid, long awake_us, long timeout_us, struct tracee *ret);

/*
 * Reads the registers of a stopped thread. Returns false if the thread has ended, or is not stopped. During this call,
 * the kernel waits until the thread has left its CPU. To make this wait shorter, read the target's memory before the
 * call. Reading the memory first is safe, because a stopped thread no longer changes memory.
 */
bool tracee_read_registers(struct tracee *tracee);

/*
 * Lets a stopped thread run one instruction, and reads its registers again. Returns false if the thread has ended, or
 * if a signal is pending. A pending signal stays pending, and prevents further steps. The call waits until the thread
 * has executed the instruction. If the thread is frozen, or waits for a page from a disk that does not answer, the call
 * might not return until the thread ends. rbdump cannot stop waiting earlier, because it can detach only from a stopped
 * thread.
 */
bool tracee_step(struct tracee *tracee);

/* Detaches from the thread. The thread goes on, and gets the signal that it was about to take. */
void tracee_resume(struct tracee *tracee);

#endif
