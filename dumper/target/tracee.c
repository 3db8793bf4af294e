#include "target/tracee.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "moments.h"

/* How long one that was killed may take to end: longer only where its memory is much, or it writes a core. */
#define KILLED_US 100000L

/* How long to sleep between two looks for a stop that the kernel has not told of. */
#define LOOK_NS 5000000L

/* Whether a thread of this process has been seized by the thread that calls. */
static bool is_ours(pid_t tid)
{
	char path[64], line[256];
	pid_t tracer = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	file = fopen(path, "re");
	/* The name in its first line is escaped, and cannot look like another line (proc(5)). */
	while (file && fgets(line, sizeof(line), file) && sscanf(line, "TracerPid: %d", &tracer) != 1)
		;
	if (file)
		fclose(file);
	return tracer == gettid();
}

/*
 * Asks the kernel for the next stop. What it has to tell of that is left with it (WNOWAIT): a signal that is on its way
 * is part of it, and would be lost if rbdump was killed before it lets the thread go on (kernel/exit.c,
 * wait_task_stopped(), v6.1).
 *   stop  receives the signal, and above that the event of ptrace(2); 0: it runs still
 * Returns false if the thread has ended; it was reaped if it had to be.
 */
static bool ask_for_stop(struct tracee *tracee, int *stop)
{
	siginfo_t info = {0};

	*stop = 0;
	if (waitid(P_PID, (id_t)tracee->tid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) != 0)
		return false;
	if (info.si_pid != tracee->tid)
		return true;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
		tracee->reaped = waitpid(tracee->tid, &tracee->status, __WALL | WNOHANG) == tracee->tid &&
				 tracee->tid == tracee->pid;
		return false;
	}
	*stop = info.si_status;
	return true;
}

static bool is_event(int stop)
{
	return stop >> 8 == PTRACE_EVENT_STOP;
}

/* Sleeps until the kernel tells of a stop (SIGCHLD, which is blocked), or a little longer. */
static void sleep_until_told(void)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &(struct timespec){.tv_nsec = LOOK_NS});
}

/*
 * Waits for the next stop: awake for as long as the tracee says, and then asleep until the kernel tells of it. From
 * another CPU, the stop is seen so within 10 us; to be woken up for it takes some 20 more, in which the target stands
 * still. On the CPU of its tracee, a tracer that does not sleep only keeps it from stopping.
 */
static enum tracee_result wait_for_stop(struct tracee *tracee, long timeout_us, int *stop)
{
	struct timespec began;
	long waited;

	clock_gettime(CLOCK_MONOTONIC, &began);
	for (;;) {
		if (!ask_for_stop(tracee, stop)) {
			tracee->seized = tracee->stopped = false;
			return TRACEE_GONE;
		}
		if (*stop != 0) {
			tracee->stopped = true;
			return TRACEE_STOPPED;
		}
		waited = elapsed_ns(&began);
		if (waited / 1000 > timeout_us)
			return TRACEE_TIMEOUT;
		if (waited / 1000 >= tracee->awake_us)
			sleep_until_told();
	}
}

/*
 * A thread that is not the first of its process, and becomes another program (execve(2)), gets the number of the first
 * one, and stays seized: the interrupt stops it there. Lets it go.
 */
static enum tracee_result let_new_program_go(struct tracee *tracee, long timeout_us)
{
	struct tracee leader = {.pid = tracee->pid, .tid = tracee->pid, .seized = true};
	enum tracee_result result;
	int stop;

	if (!is_ours(tracee->pid))
		return TRACEE_GONE;
	result = wait_for_stop(&leader, timeout_us, &stop);
	if (result == TRACEE_STOPPED && !is_event(stop))
		leader.pending_signal = stop & 0x7f;
	tracee_resume(&leader);
	tracee->reaped = leader.reaped;
	tracee->status = leader.status;
	return result == TRACEE_TIMEOUT ? TRACEE_TIMEOUT : TRACEE_GONE;
}

enum tracee_result tracee_stop(pid_t pid, pid_t tid, long awake_us, long timeout_us, struct tracee *ret)
{
	enum tracee_result result;
	int stop;

	*ret = (struct tracee){.pid = pid, .tid = tid, .awake_us = awake_us};
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return errno == ESRCH ? TRACEE_GONE : TRACEE_REFUSED;
	ret->seized = true;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0)
		result = TRACEE_GONE;
	else
		result = wait_for_stop(ret, timeout_us, &stop);
	if (result == TRACEE_GONE && tid != pid)
		return let_new_program_go(ret, timeout_us);
	if (result != TRACEE_STOPPED)
		return result;
	/* A stop that is not our interrupt's, nor that of a process that was stopped before, is a signal on its way. */
	if (!is_event(stop))
		ret->pending_signal = stop & 0x7f;
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
	int stop;

	if (!tracee->stopped || tracee->pending_signal != 0)
		return false;
	if (ptrace(PTRACE_SINGLESTEP, tracee->tid, NULL, NULL) != 0)
		return false;
	tracee->stopped = false;
	/* However long it waits for a page: given up now, it would go on with its trap flag set. */
	if (wait_for_stop(tracee, LONG_MAX, &stop) != TRACEE_STOPPED)
		return false;
	if (!is_event(stop) && ((stop & 0x7f) != SIGTRAP || was_sent(tracee)))
		tracee->pending_signal = stop & 0x7f;
	return tracee_read_registers(tracee) && tracee->pending_signal == 0;
}

void tracee_resume(struct tracee *tracee)
{
	int stop;

	if (!tracee->seized)
		return;
	/* A thread that did not stop can only be given up once it has; it is not waited for long. What is left is given
	   up by the kernel when the tracer ends. */
	if (!tracee->stopped && wait_for_stop(tracee, 1000, &stop) == TRACEE_STOPPED && !is_event(stop))
		tracee->pending_signal = stop & 0x7f;
	/* One that was killed while it was stopped cannot be given up. Its end is its tracer's to see first, and its
	   parent is not told before that. */
	if (tracee->stopped && ptrace(PTRACE_DETACH, tracee->tid, NULL, (void *)(long)tracee->pending_signal) != 0 &&
	    errno == ESRCH)
		wait_for_stop(tracee, KILLED_US, &stop);
	tracee->seized = tracee->stopped = false;
}
