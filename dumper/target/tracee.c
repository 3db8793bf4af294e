#include "target/tracee.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "moments.h"

/* How long one that was killed may take to end: longer only where its memory is much, or it writes a core. */
#define KILLED_US 100000L

/* How long to sleep between two looks for a stop that the kernel has not told of. */
#define LOOK_NS 5000000L

/*
 * Waits for the next stop: awake for as long as the tracee says, and then asleep until the kernel tells of it (SIGCHLD,
 * which is blocked). From another CPU, the stop is seen so within 10 us; to be woken up for it takes some 20 more, in
 * which the target stands still. On the CPU of its tracee, a tracer that does not sleep only keeps it from stopping.
 */
static enum tracee_result wait_for_stop(struct tracee *tracee, long timeout_us, int *status)
{
	struct timespec began;
	sigset_t child;
	long waited;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (;;) {
		pid_t tid = waitpid(tracee->tid, status, __WALL | WNOHANG);

		if (tid < 0 || (tid == tracee->tid && !WIFSTOPPED(*status))) {
			tracee->seized = tracee->stopped = false;
			tracee->reaped = tid == tracee->tid;
			tracee->status = tracee->reaped ? *status : 0;
			return TRACEE_GONE;
		}
		if (tid == tracee->tid) {
			tracee->stopped = true;
			return TRACEE_STOPPED;
		}
		waited = elapsed_ns(&began);
		if (waited / 1000 > timeout_us)
			return TRACEE_TIMEOUT;
		if (waited / 1000 >= tracee->awake_us)
			sigtimedwait(&child, NULL, &(struct timespec){.tv_nsec = LOOK_NS});
	}
}

enum tracee_result tracee_stop(pid_t tid, long awake_us, long timeout_us, struct tracee *ret)
{
	enum tracee_result result;
	int status;

	*ret = (struct tracee){.tid = tid, .awake_us = awake_us};
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return errno == ESRCH ? TRACEE_GONE : TRACEE_REFUSED;
	ret->seized = true;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0)
		return TRACEE_GONE;
	result = wait_for_stop(ret, timeout_us, &status);
	if (result != TRACEE_STOPPED)
		return result;
	/* A stop that is not our interrupt's, nor that of a process that was stopped before, is a signal on its way. */
	if (status >> 16 != PTRACE_EVENT_STOP)
		ret->pending_signal = WSTOPSIG(status);
	return TRACEE_STOPPED;
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
	int status;

	if (!tracee->stopped || tracee->pending_signal != 0)
		return false;
	if (ptrace(PTRACE_SINGLESTEP, tracee->tid, NULL, NULL) != 0)
		return false;
	tracee->stopped = false;
	/* However long it waits for a page: given up now, it would go on with its trap flag set. */
	if (wait_for_stop(tracee, LONG_MAX, &status) != TRACEE_STOPPED)
		return false;
	if (status >> 16 != PTRACE_EVENT_STOP && (WSTOPSIG(status) != SIGTRAP || was_sent(tracee)))
		tracee->pending_signal = WSTOPSIG(status);
	return tracee_read_registers(tracee) && tracee->pending_signal == 0;
}

void tracee_resume(struct tracee *tracee)
{
	int status;

	if (!tracee->seized)
		return;
	/* A thread that did not stop can only be given up once it has; it is not waited for long. What is left is given
	   up by the kernel when the tracer ends. */
	if (!tracee->stopped && wait_for_stop(tracee, 1000, &status) == TRACEE_STOPPED &&
	    status >> 16 != PTRACE_EVENT_STOP)
		tracee->pending_signal = WSTOPSIG(status);
	/* One that was killed while it was stopped cannot be given up. Its end is its tracer's to see first, and its
	   parent is not told before that. */
	if (tracee->stopped && ptrace(PTRACE_DETACH, tracee->tid, NULL, (void *)(long)tracee->pending_signal) != 0 &&
	    errno == ESRCH)
		wait_for_stop(tracee, KILLED_US, &status);
	tracee->seized = tracee->stopped = false;
}
