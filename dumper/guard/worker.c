#include "guard/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/child_signal.h"
#include "base/tell.h"
#include "guard/stop_guard.h"

_Atomic int worker_stop = WORKER_RUN;
_Atomic unsigned int worker_signals;

static volatile pid_t worker;

/* The signals that end rbdump, and those that stop it. Neither may end or stop the worker in the middle of a pause. */
static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int stopping[] = {SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};

enum { ENDING = sizeof(ending) / sizeof(ending[0]), STOPPING = sizeof(stopping) / sizeof(stopping[0]) };

/* The signals that rbdump may ignore, other than those that end it; and the actions that it was started with. */
static const int ignored[] = {SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ};

enum { IGNORED = sizeof(ignored) / sizeof(ignored[0]) };

static struct sigaction before_ignored[IGNORED];

/* The signal mask that rbdump was started with. */
static sigset_t before_mask;

/* The signal handler of the worker. The kernel sends SIGUSR1 when rbdump is gone. */
static void stop_worker(int signal)
{
	int run = WORKER_RUN;

	worker_signals++;
	if (signal == SIGUSR1)
		worker_stop = WORKER_ABANDON;
	else
		atomic_compare_exchange_strong(&worker_stop, &run, WORKER_FINISH);
}

/* The signal handler of rbdump itself. A worker that is stopped goes on: otherwise it could not end. */
static void pass_on(int signal)
{
	int errnum = errno;

	if (worker > 0) {
		kill(worker, signal);
		kill(worker, SIGCONT);
	}
	errno = errnum;
}

/* Sets a handler for the signals in `ending`. Signals that are ignored (nohup) stay ignored. */
static void handle(void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, before;

	for (size_t i = 0; i < ENDING; i++)
		if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(ending[i], &action, NULL);
}

void worker_restore_signals(void)
{
	for (size_t i = 0; i < IGNORED; i++)
		sigaction(ignored[i], &before_ignored[i], NULL);
	child_signal_restore();
	sigprocmask(SIG_SETMASK, &before_mask, NULL);
}

void worker_begin(pid_t parent)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t lost;

	/* Signals to rbdump's process group, from a terminal or from timeout(1), must not reach the worker. */
	setpgid(0, 0);
	for (size_t i = 0; i < STOPPING; i++)
		sigaction(stopping[i], &ignore, NULL);
	handle(stop_worker, 0);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = stop_worker}, NULL);
	/* rbdump may have been started with SIGUSR1 blocked. */
	sigemptyset(&lost);
	sigaddset(&lost, SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &lost, NULL);
	prctl(PR_SET_PDEATHSIG, SIGUSR1);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
}

void worker_block_child_signal(void)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before_mask);
	for (size_t i = 0; i < IGNORED; i++)
		sigaction(ignored[i], NULL, &before_ignored[i]);
}

int worker_run(int (*work)(void *context), void *context)
{
	pid_t parent = getpid(), ended;
	struct error *error;
	sigset_t child;
	int status;

	/* SIGCHLD is blocked before the fork, so that it is always blocked in the worker, and its threads inherit that. */
	worker_block_child_signal();
	error = stop_guard_begin();
	if (error)
		return tell_error(error);
	fflush(NULL);
	worker = fork();
	if (worker < 0) {
		fprintf(stderr, "rbdump: cannot start a process: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	if (worker == 0) {
		worker_begin(parent);
		error = stop_guard_enter();
		if (error)
			_exit(tell_error(error));
		status = work(context);
		fflush(NULL);
		_exit(status);
	}
	/* Both processes set the group, so that it is set before either of them goes on. */
	setpgid(worker, worker);
	sigprocmask(SIG_SETMASK, &before_mask, NULL);
	handle(pass_on, SA_RESTART);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	while ((ended = waitpid(worker, &status, WNOHANG)) == 0) {
		stop_guard_keep();
		sigtimedwait(&child, NULL, &(struct timespec){.tv_sec = 1});
	}
	stop_guard_end();
	if (ended < 0) {
		fprintf(stderr, "rbdump: cannot find out how the experiment ended: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "rbdump: the experiment was killed by signal %d\n", WTERMSIG(status));
		return EXIT_FAILED;
	}
	return WEXITSTATUS(status);
}
