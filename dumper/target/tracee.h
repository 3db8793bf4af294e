/*
 * One native thread of a target, stopped for a moment.
 *
 * For each stop, rbdump seizes the thread, and afterwards detaches from it. Between two stops, the target is not
 * traced. The target then gets its signals as usual, and nothing that happens to rbdump affects the target. All calls
 * for one stop must come from one rbdump thread (a rule of ptrace(2)). SIGCHLD must be blocked in this thread.
 *
 * The trap flag of a thread that is single-stepped stays set until tracee_resume(). If the tracer dies before it calls
 * tracee_resume(), the flag stays set, because exit_ptrace() (kernel/ptrace.c) does not call ptrace_disable(). The next
 * trap then kills the target. So only a worker may single-step: if rbdump is killed, the worker survives, and can still
 * detach from the thread (guard/worker.h).
 */
#ifndef RBDUMP_TRACEE_H
#define RBDUMP_TRACEE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"

struct tracee {
	pid_t pid, tid; /* pid: the thread's process */
	long awake_us;	/* the argument `awake_us` of tracee_stop() */
	bool seized, stopped;
	int pending_signal; /* the signal that the thread gets when it goes on; 0: none */
	bool reaped; /* the thread has ended and was reaped; if it is a child of rbdump, a later wait gets no status */
	int status;  /* if reaped: the status that waitpid() gave */
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
 *   awake_us    to wait for a stop, this function and tracee_step() first spin for this number of microseconds, and
 *               then sleep. Pass 0 if the caller might run on the same CPU as the thread
 *   timeout_us  how long to wait for the stop
 */
enum tracee_result tracee_stop(pid_t pid, pid_t tid, long awake_us, long timeout_us, struct tracee *ret);

/*
 * Reads the registers of a stopped thread. False if the thread has ended, or is not stopped. During this call, the
 * kernel waits until the thread has left its CPU. To make this wait shorter, read the target's memory before the call.
 * This is safe, because a stopped thread no longer changes memory.
 */
bool tracee_read_registers(struct tracee *tracee);

/*
 * Lets a stopped thread run one instruction, and reads its registers again. Returns false if the thread has ended, or
 * if a signal is pending. A pending signal stays pending, and prevents further steps. The call takes as long as the
 * instruction. If the thread is frozen, or waits for a page from a disk that does not answer, the call might not return
 * until the thread ends. rbdump cannot give up this wait, because it can detach only from a stopped thread.
 */
bool tracee_step(struct tracee *tracee);

/* Detaches from the thread. The thread goes on, and gets the signal that it was about to take. */
void tracee_resume(struct tracee *tracee);

#endif
