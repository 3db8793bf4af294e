#include "experiment/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"

volatile int guard_stop = GUARD_RUN;

static volatile pid_t worker;

/* In the worker. SIGUSR1 is what the kernel sends when rbdump is gone. */
static void stop_worker(int signal)
{
	guard_stop = signal == SIGUSR1 ? GUARD_ABANDON : guard_stop == GUARD_ABANDON ? GUARD_ABANDON : GUARD_FINISH;
}

/* In rbdump itself. A terminal's ^C reaches both; the worker does not mind to hear of it twice. */
static void pass_on(int signal)
{
	int errnum = errno;

	if (worker > 0)
		kill(worker, signal);
	errno = errnum;
}

static void handle(void (*handler)(int), int flags)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

int guard_run(int (*work)(void *context), void *context)
{
	pid_t parent = getpid();
	sigset_t child, before;
	int status;

	/* Blocked in the worker from its first instruction on: its threads inherit that. */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	fflush(NULL);
	worker = fork();
	if (worker < 0) {
		fprintf(stderr, "rbdump: no process can be started: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	if (worker == 0) {
		handle(stop_worker, 0);
		sigaction(SIGUSR1, &(struct sigaction){.sa_handler = stop_worker}, NULL);
		prctl(PR_SET_PDEATHSIG, SIGUSR1);
		if (getppid() != parent)
			_exit(EXIT_FAILED);
		/* A reader of the output that has gone must not end the worker in the middle of a stop. */
		signal(SIGPIPE, SIG_IGN);
		status = work(context);
		fflush(NULL);
		_exit(status);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	handle(pass_on, SA_RESTART);
	while (waitpid(worker, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "rbdump: the experiment was ended by signal %d\n", WTERMSIG(status));
		return EXIT_FAILED;
	}
	return WEXITSTATUS(status);
}
