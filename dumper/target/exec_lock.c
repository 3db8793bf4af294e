#include "target/exec_lock.h"

#include <errno.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "target/stop.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Nothing else uses it. Not SIGCHLD: setting that back to its default would drop one that others wait for. */
#define WAKE SIGRTMIN

/* After this time PTRACE_SEIZE is interrupted, and then again after each such time since the last look. */
#define WAKE_NS 2000000L

/* The target of which a thread is being seized; NULL at other times, because its list of threads may change then. */
static const struct target *volatile seizing;

/* The timer of the thread that seizes. It is set anew after each signal: so PTRACE_SEIZE gets on, however long a look takes. */
static timer_t waking;

static const struct itimerspec once = {.it_value.tv_nsec = WAKE_NS};

/* One by one: a wait for the end of any thread would also consume stops (kernel/exit.c, wait_task_stopped()). */
static void see_ends(int signal)
{
	const struct target *target = seizing;
	const int errnum = errno;

	(void)signal;
	for (size_t i = 0; target && i < target->nr_threads; i++) {
		const struct native_thread *thread = &target->threads[i];
		int pending, status;

		if (thread->stopping || (thread->stopped && !thread->asleep))
			stop_look(thread->tid, &pending, &status);
	}
	timer_settime(waking, 0, &once, NULL);
	errno = errnum;
}

void exec_lock_watch(struct exec_lock *lock)
{
	struct sigevent wake = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WAKE};
	sigset_t signals;

	wake.sigev_notify_thread_id = gettid();
	lock->watched = timer_create(CLOCK_MONOTONIC, &wake, &lock->timer) == 0;
	if (!lock->watched)
		return;
	sigaction(WAKE, &(struct sigaction){.sa_handler = see_ends, .sa_flags = SA_RESTART}, &lock->action);
	sigemptyset(&signals);
	sigaddset(&signals, WAKE);
	pthread_sigmask(SIG_UNBLOCK, &signals, &lock->signals);
	waking = lock->timer;
	timer_settime(waking, 0, &once, NULL);
}

void exec_lock_forget(struct exec_lock *lock)
{
	sigset_t signals;

	if (!lock->watched)
		return;
	timer_delete(lock->timer);
	pthread_sigmask(SIG_SETMASK, &lock->signals, NULL);
	/* A signal that is still pending would end the process. */
	sigemptyset(&signals);
	sigaddset(&signals, WAKE);
	sigtimedwait(&signals, NULL, &(struct timespec){0});
	sigaction(WAKE, &lock->action, NULL);
	lock->watched = false;
}

int exec_lock_seize(const struct target *target, pid_t tid)
{
	int errnum;

	seizing = target;
	errnum = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 ? 0 : errno;
	seizing = NULL;
	return errnum;
}
