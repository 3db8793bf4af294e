#include "supervise/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child_signal.h"
#include "error.h"
#include "supervise/stop_guard.h"

_Atomic int guard_stop = GUARD_RUN;
_Atomic unsigned int guard_signals;

static volatile pid_t worker;

/* What ends rbdump, and what stops it: neither may hit the worker in the middle of a pause. */
static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int stopping[] = {SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};

enum { ENDING = sizeof(ending) / sizeof(ending[0]), STOPPING = sizeof(stopping) / sizeof(stopping[0]) };

/* What the worker does with the second kind, and did before. */
static struct sigaction before_stopping[STOPPING];

/* What rbdump was started with blocked. */
static sigset_t before_mask;

/* In the worker. SIGUSR1 is what the kernel sends when rbdump is gone. */
static void stop_worker(int signal)
{
	int run = GUARD_RUN;

	guard_signals++;
	if (signal == SIGUSR1)
		guard_stop = GUARD_ABANDON;
	else
		atomic_compare_exchange_strong(&guard_stop, &run, GUARD_FINISH);
}

/* In rbdump itself. */
static void pass_on(int signal)
{
	int errnum = errno;

	if (worker > 0)
		kill(worker, signal);
	errno = errnum;
}

/* What is ignored (nohup) stays so. */
static void handle(void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, before;

	for (size_t i = 0; i < ENDING; i++)
		if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(ending[i], &action, NULL);
}

void guard_restore_signals(void)
{
	for (size_t i = 0; i < STOPPING; i++)
		sigaction(stopping[i], &before_stopping[i], NULL);
	child_signal_restore();
	sigprocmask(SIG_SETMASK, &before_mask, NULL);
}

void guard_become_worker(pid_t parent)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t lost;

	/* What is sent to rbdump's process group, by a terminal or by timeout(1), does not reach the worker. */
	setpgid(0, 0);
	for (size_t i = 0; i < STOPPING; i++)
		sigaction(stopping[i], &ignore, &before_stopping[i]);
	handle(stop_worker, 0);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = stop_worker}, NULL);
	/* It may have been blocked by whoever started rbdump. */
	sigemptyset(&lost);
	sigaddset(&lost, SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &lost, NULL);
	prctl(PR_SET_PDEATHSIG, SIGUSR1);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
}

void guard_block_child_signal(void)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before_mask);
}

static int fail(struct error *error)
{
	fprintf(stderr, "rbdump: %s\n", error->message);
	error_destroy(error);
	return EXIT_FAILED;
}

int guard_run(int (*work)(void *context), void *context)
{
	pid_t parent = getpid(), ended;
	struct error *error;
	sigset_t child;
	int status;

	/* Blocked in the worker from its first instruction on: its threads inherit that. */
	guard_block_child_signal();
	error = stop_guard_begin();
	if (error)
		return fail(error);
	fflush(NULL);
	worker = fork();
	if (worker < 0) {
		fprintf(stderr, "rbdump: no process can be started: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	if (worker == 0) {
		guard_become_worker(parent);
		error = stop_guard_enter();
		if (error)
			_exit(fail(error));
		status = work(context);
		fflush(NULL);
		_exit(status);
	}
	/* Both do it, so that it is done before either goes on. */
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
		fprintf(stderr, "rbdump: it cannot be told how the experiment ended: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "rbdump: the experiment was ended by signal %d\n", WTERMSIG(status));
		return EXIT_FAILED;
	}
	return WEXITSTATUS(status);
}
