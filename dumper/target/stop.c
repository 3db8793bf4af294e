#include "target/stop.h"

#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/process_stat.h"

/* How long to sleep between two looks for the stop of a program after exec. */
#define LOOK_NS 1000000L

enum stop_news stop_look(pid_t tid, int *signal, int *status)
{
	siginfo_t info = {0};

	*signal = *status = 0;
	if (waitid(P_PID, (id_t)tid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) != 0)
		return STOP_GONE;
	if (info.si_pid != tid)
		return STOP_NONE;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return waitpid(tid, status, __WALL | WNOHANG) == tid ? STOP_ENDED : STOP_GONE;
	/* Not from PTRACE_INTERRUPT, and not a group stop (SIGSTOP): the thread stopped to take a signal. */
	if (info.si_status >> 8 != PTRACE_EVENT_STOP)
		*signal = info.si_status & 0x7f;
	return STOP_STOPPED;
}

void stop_sleep(long ns)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &(struct timespec){.tv_nsec = ns});
}

bool stop_let_go_after_exec(pid_t pid, long timeout_us)
{
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	for (;;) {
		int signal, status;
		enum stop_news news = stop_look(pid, &signal, &status);

		/* The interrupt may have been lost, because the thread had just got another id. */
		if (news == STOP_NONE)
			ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		if (news == STOP_STOPPED)
			ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)signal);
		/* A child of rbdump that is not traced gives STOP_NONE, too. */
		if (news != STOP_NONE || process_stat_tracer("/proc", pid) != gettid())
			return true;
		if (elapsed_ns(&began) / 1000 > timeout_us)
			return false;
		stop_sleep(LOOK_NS);
	}
}
