#include "session/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guard/worker.h"

/* How long a program may take to become a Ruby, and how often it is looked at. */
#define START_S 30
#define LOOK_NS 20000000L

struct error *launch(char *const command[], pid_t group, pid_t *ret)
{
	int report[2], errnum = 0;
	pid_t self = getpid(), pid;
	ssize_t n;

	if (pipe2(report, O_CLOEXEC) != 0)
		return error_create(EXIT_FAILED, "%s cannot be started: %s", command[0], strerror(errno));
	pid = fork();
	if (pid == 0) {
		worker_restore_signals();
		setpgid(0, group);
		prctl(PR_SET_PTRACER, (unsigned long)self, 0, 0, 0);
		execvp(command[0], command);
		errnum = errno;
		n = write(report[1], &errnum, sizeof(errnum));
		_exit(n == sizeof(errnum) ? 127 : 126);
	}
	errnum = errno;
	close(report[1]);
	if (pid > 0) {
		do
			n = read(report[0], &errnum, sizeof(errnum));
		while (n < 0 && errno == EINTR);
		if (n == 0)
			errnum = 0; /* the pipe was closed by exec */
		else
			waitpid(pid, NULL, 0);
	}
	close(report[0]);
	if (errnum != 0)
		return error_create(EXIT_FAILED, "%s cannot be started: %s", command[0], strerror(errnum));
	*ret = pid;
	return NULL;
}

struct error *launch_session(pid_t pid, const struct session_options *options, const _Atomic int *stop,
			     struct session **ret)
{
	struct timespec began, now;
	struct error *error;

	clock_gettime(CLOCK_MONOTONIC, &began);
	for (;;) {
		struct trace *trace;
		siginfo_t ended = {0};
		bool is_over;

		error = session_open(pid, options, ret, &trace);
		trace_destroy(trace);
		if (!error)
			return NULL;
		/* If it ended while it was traced, it was reaped then. */
		is_over = waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 ? ended.si_pid == pid
											     : errno == ECHILD;
		if (is_over) {
			error_destroy(error);
			return error_create(EXIT_FAILED,
					    "the program ended before rbdump could read it as a Ruby process");
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (*stop || now.tv_sec - began.tv_sec > START_S)
			return error;
		error_destroy(error);
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
}
