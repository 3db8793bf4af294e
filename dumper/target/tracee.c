#include "target/tracee.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <time.h>

#include "base/clock.h"
#include "target/hold.h"
#include "target/stop.h"

/* How long a killed thread may take to end: it takes longer only if it has much memory, or writes a core. */
#define KILLED_US 100000L

/* How long a thread that has called exec may take to stop in the new program. */
#define EXEC_US 100000L

/* How long to sleep at most between two looks for a stop: the kernel may not report it (SIGCHLD). */
#define LOOK_NS 5000000L

/*
 * Waits for the next stop: spins for `awake_us`, and then sleeps until the kernel reports it (SIGCHLD, which is
 * blocked). If the tracer spins on another CPU, it sees the stop within 10 us. A wake-up takes some 20 us more, while
 * the target is stopped. On the CPU of its tracee, a tracer that spins only keeps the tracee from stopping.
 *   signal  receives the signal that it is about to take; 0 if none
 */
static enum tracee_result wait_for_stop(struct tracee *tracee, long timeout_us, int *signal)
{
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	for (;;) {
		int status;
		enum stop_news news = stop_look(tracee->tid, signal, &status);
		long waited;

		if (news == STOP_STOPPED) {
			tracee->stopped = true;
			return TRACEE_STOPPED;
		}
		if (news != STOP_NONE) {
			tracee->stopped = false;
			tracee->reaped = news == STOP_ENDED;
			tracee->status = status;
			/* If it has called exec, the new program must not stay stopped. */
			tracee->seized = news == STOP_GONE && tracee->tid != tracee->pid &&
					 !stop_let_go_after_exec(tracee->pid, EXEC_US);
			return tracee->seized ? TRACEE_TIMEOUT : TRACEE_GONE;
		}
		waited = elapsed_ns(&began) / 1000;
		if (waited > timeout_us)
			return TRACEE_TIMEOUT;
		if (waited >= tracee->awake_us)
			stop_sleep(LOOK_NS);
	}
}

enum tracee_result tracee_stop(pid_t pid, pid_t tid, long awake_us, long timeout_us, struct tracee *ret)
{
	*ret = (struct tracee){.pid = pid, .tid = tid, .awake_us = awake_us};
	hold_begin(pid);
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return errno == ESRCH ? TRACEE_GONE : TRACEE_REFUSED;
	ret->seized = true;
	/* If the thread is gone, the wait finds out why. */
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return wait_for_stop(ret, timeout_us, &ret->pending_signal);
}

bool tracee_read_registers(struct tracee *tracee)
{
	return tracee->stopped && ptrace(PTRACE_GETREGS, tracee->tid, NULL, &tracee->registers) == 0;
}

/* Whether the SIGTRAP of a stop was sent by a process. That of a step comes from the kernel. */
static bool was_sent(const struct tracee *tracee)
{
	siginfo_t info = {0};

	return ptrace(PTRACE_GETSIGINFO, tracee->tid, NULL, &info) == 0 && info.si_code <= 0;
}

bool tracee_step(struct tracee *tracee)
{
	int signal;

	if (!tracee->stopped || tracee->pending_signal != 0)
		return false;
	if (ptrace(PTRACE_SINGLESTEP, tracee->tid, NULL, NULL) != 0)
		return false;
	tracee->stopped = false;
	/* No time limit, even if it waits for a page: a detach now would leave its trap flag set. */
	if (wait_for_stop(tracee, LONG_MAX, &signal) != TRACEE_STOPPED)
		return false;
	if (signal != SIGTRAP || was_sent(tracee))
		tracee->pending_signal = signal;
	return tracee_read_registers(tracee) && tracee->pending_signal == 0;
}

void tracee_resume(struct tracee *tracee)
{
	int signal;

	/* PTRACE_DETACH needs a stopped thread: waits a little for one that did not stop. If it still does not, the
	   kernel detaches it when the tracer ends. */
	if (tracee->seized && !tracee->stopped)
		wait_for_stop(tracee, 1000, &tracee->pending_signal);
	/* A thread that was killed while it was stopped cannot be detached. Its tracer must reap it: only then is its
	   parent told. */
	if (tracee->stopped && ptrace(PTRACE_DETACH, tracee->tid, NULL, (void *)(long)tracee->pending_signal) != 0 &&
	    errno == ESRCH)
		wait_for_stop(tracee, KILLED_US, &signal);
	if (!tracee->seized || tracee->stopped)
		hold_end();
	tracee->seized = tracee->stopped = false;
}
