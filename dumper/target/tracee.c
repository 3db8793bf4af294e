#include "target/tracee.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <time.h>

#include "moments.h"
#include "target/hold.h"
#include "target/stop.h"

/* How long one that was killed may take to end: longer only where its memory is much, or it writes a core. */
#define KILLED_US 100000L

/* How long it may take a thread that has called exec to get to its new program. */
#define EXEC_US 100000L

/* How long to sleep between two looks for a stop that the kernel has not told of. */
#define LOOK_NS 5000000L

/*
 * Waits for the next stop: awake for as long as the tracee says, and then asleep until the kernel tells of it (SIGCHLD,
 * which is blocked). From another CPU, the stop is seen so within 10 us; to be woken up for it takes some 20 more, in
 * which the target stands still. On the CPU of its tracee, a tracer that does not sleep only keeps it from stopping.
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
			/* What it has become by exec must not stay stopped. */
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
	/* If there is no such thread any more, the wait tells what has become of it. */
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return wait_for_stop(ret, timeout_us, &ret->pending_signal);
}

bool tracee_read_registers(struct tracee *tracee)
{
	return tracee->stopped && ptrace(PTRACE_GETREGS, tracee->tid, NULL, &tracee->registers) == 0;
}

/* Whether a SIGTRAP that a thread has stopped for was sent by somebody: that of a step comes from the kernel. */
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
	/* However long it waits for a page: given up now, it would go on with its trap flag set. */
	if (wait_for_stop(tracee, LONG_MAX, &signal) != TRACEE_STOPPED)
		return false;
	if (signal != SIGTRAP || was_sent(tracee))
		tracee->pending_signal = signal;
	return tracee_read_registers(tracee) && tracee->pending_signal == 0;
}

void tracee_resume(struct tracee *tracee)
{
	int signal;

	/* A thread that did not stop can only be given up once it has; it is not waited for long. What is left is given
	   up by the kernel when the tracer ends. */
	if (tracee->seized && !tracee->stopped)
		wait_for_stop(tracee, 1000, &tracee->pending_signal);
	/* One that was killed while it was stopped cannot be given up. Its end is its tracer's to see first, and its
	   parent is not told before that. */
	if (tracee->stopped && ptrace(PTRACE_DETACH, tracee->tid, NULL, (void *)(long)tracee->pending_signal) != 0 &&
	    errno == ESRCH)
		wait_for_stop(tracee, KILLED_US, &signal);
	if (!tracee->seized || tracee->stopped)
		hold_end();
	tracee->seized = tracee->stopped = false;
}
