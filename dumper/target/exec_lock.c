#include "target/exec_lock.h"

#include <errno.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Nobody else uses it. Not SIGCHLD: to set that back to its default would drop one that is waited for elsewhere. */
#define WAKE SIGRTMIN

/* How long a wait may be before it is interrupted, and how often it is then. */
#define WAKE_NS 2000000L

static void see_ends(int signal)
{
	const int errnum = errno;
	siginfo_t info;

	(void)signal;
	do
		info = (siginfo_t){0};
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL | __WNOTHREAD) == 0 && info.si_pid != 0);
	errno = errnum;
}

void exec_lock_watch(struct exec_lock *lock)
{
	const struct itimerspec often = {.it_value.tv_nsec = WAKE_NS, .it_interval.tv_nsec = WAKE_NS};
	struct sigevent wake = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WAKE};
	sigset_t signals;

	wake.sigev_notify_thread_id = gettid();
	lock->watched =
	    sigaction(WAKE, &(struct sigaction){.sa_handler = see_ends, .sa_flags = SA_RESTART}, NULL) == 0 &&
	    timer_create(CLOCK_MONOTONIC, &wake, &lock->timer) == 0;
	if (!lock->watched)
		return;
	sigemptyset(&signals);
	sigaddset(&signals, WAKE);
	pthread_sigmask(SIG_UNBLOCK, &signals, &lock->before);
	timer_settime(lock->timer, 0, &often, NULL);
}

void exec_lock_forget(struct exec_lock *lock)
{
	if (!lock->watched)
		return;
	timer_delete(lock->timer);
	pthread_sigmask(SIG_SETMASK, &lock->before, NULL);
	lock->watched = false;
}
