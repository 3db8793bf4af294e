/* The guard is killed, and no process can be started any more: a tracer that is stopped goes on all the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard/stop_guard.h"
#include "target/hold.h"

enum { LOOK_MS = 20, MUCH_S = 60 };

/* What the process that is tested says by its exit status. */
enum { WELL, NO_GUARD, CANNOT_TRACE, GONE, STOPS_WITHOUT_GUARD };

/* Until the seccomp filter is there, the kernel starts processes. */
static bool forbid_processes(void)
{
	static const int calls[] = {SCMP_SYS(clone), SCMP_SYS(clone3), SCMP_SYS(fork), SCMP_SYS(vfork)};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	bool done = filter != NULL;

	for (size_t i = 0; done && i < sizeof(calls) / sizeof(calls[0]); i++)
		done = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAGAIN), calls[i], 0) == 0;
	done = done && seccomp_load(filter) == 0;
	seccomp_release(filter);
	return done;
}

/* Kills the children of this process. */
static bool kill_children(void)
{
	char path[64];
	bool killed = false;
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &pid) == 1)
		killed = kill(pid, SIGKILL) == 0;
	if (file)
		fclose(file);
	return killed;
}

/* A tracer that is stopped while it holds a thread. It says when it begins, and when it goes on. */
static _Noreturn void trace(int to)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (stop_guard_enter())
		_exit(CANNOT_TRACE);
	hold_begin(getppid());
	if (write(to, "a", 1) != 1)
		_exit(CANNOT_TRACE);
	raise(SIGSTOP);
	hold_end();
	_exit(write(to, "b", 1) == 1 ? WELL : CANNOT_TRACE);
}

/* In a process of its own, which can start no more processes after that. */
static int play(void)
{
	int ends[2];
	struct pollfd from = {.events = POLLIN};
	char letter = 0;
	siginfo_t end;
	pid_t tracer;

	alarm(MUCH_S);
	if (pipe(ends) != 0 || stop_guard_begin() || !kill_children() || waitid(P_ALL, 0, &end, WEXITED | WNOWAIT) != 0)
		return NO_GUARD;
	tracer = fork();
	if (tracer == 0)
		trace(ends[1]);
	if (tracer < 0 || read(ends[0], &letter, 1) != 1 ||
	    waitid(P_PID, (id_t)tracer, &end, WSTOPPED | WNOWAIT) != 0 || !forbid_processes())
		return CANNOT_TRACE;
	from.fd = ends[0];
	do
		stop_guard_keep();
	while (poll(&from, 1, LOOK_MS) == 0);
	/* It has ended by itself, and nobody else has taken its end. */
	if (read(ends[0], &letter, 1) != 1 || letter != 'b' || waitpid(tracer, NULL, 0) != tracer)
		return GONE;
	stop_guard_keep();
	/* Nobody would look after this process, so it must not stop a target. */
	return stop_guard_enter() ? WELL : STOPS_WITHOUT_GUARD;
}

static void test_no_process(void **state)
{
	char said[1024] = "", *at;
	size_t length = 0;
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		_exit(play());
	}
	close(ends[1]);
	while (length < sizeof(said) - 1 && (n = read(ends[0], said + length, sizeof(said) - 1 - length)) > 0)
		length += (size_t)n;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), WELL);
	/* It is said, and only once. */
	at = strstr(
	    said, "rbdump: the guard has ended, and another one cannot be started: Resource temporarily unavailable.");
	assert_non_null(at);
	assert_null(strstr(at + 1, "rbdump:"));
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_process)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
