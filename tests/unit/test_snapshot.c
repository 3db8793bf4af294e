/* A pause that would not end ends rbdump, and with that itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "guard/stop_guard.h"
#include "session/snapshot.h"
#include "target/live.h"
#include "target/stopping.h"

/* Longer than that is no limit, on a busy machine. */
#define MUCH_S	60
#define MUCH_NS (MUCH_S * 1000000000L)

/* Says that the target is stopped, and then waits for what never comes. */
static void wait_for_ever(void *context)
{
	const int *ends = context;
	char byte = 'x';

	if (write(STDOUT_FILENO, &byte, 1) == 1 && read(ends[0], &byte, 1) >= 0)
		abort();
}

/* What rbdump does, in a process of its own. */
static _Noreturn void pause_for_ever(pid_t pid)
{
	struct target *target;
	struct memory *memory;
	struct pauses pauses = {0};
	int ends[2];

	if (pipe(ends) != 0 || live_open(pid, &target))
		abort();
	memory = memory_create(target_read_pages, target, 16);
	if (!memory || !snapshot_paused(target, memory, wait_for_ever, ends, &pauses))
		abort();
	abort();
}

/* What /proc/PID/status says after a word; "" if there is no such process. */
static void status_of(pid_t pid, const char *word, char *ret, size_t size)
{
	char path[64], line[256], format[64];
	FILE *file;

	ret[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	if (!file)
		return;
	snprintf(format, sizeof(format), "%s:", word);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, format, strlen(format)) == 0)
			snprintf(ret, size, "%s", line + strlen(format) + 1);
	fclose(file);
}

/* A process that has to be stopped to stand still. */
static pid_t start_runner(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			sched_yield();
	}
	return pid;
}

static void test_pause_without_end(void **state)
{
	pid_t target = start_runner(), dumper;
	int said[2], status;
	char text[512], value[64];
	struct timespec began;
	ssize_t length;

	(void)state;
	alarm(MUCH_S);
	assert_int_equal(pipe(said), 0);
	clock_gettime(CLOCK_MONOTONIC, &began);
	dumper = fork();
	if (dumper == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(said[1], STDOUT_FILENO);
		dup2(said[1], STDERR_FILENO);
		pause_for_ever(target);
	}
	assert_true(dumper > 0);
	assert_int_equal(read(said[0], text, 1), 1);
	status_of(target, "State", value, sizeof(value));
	assert_int_equal(value[0], 't');
	assert_int_equal(waitpid(dumper, &status, 0), dumper);
	assert_true(elapsed_ns(&began) < MUCH_NS);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_FAILED);
	length = read(said[0], text, sizeof(text) - 1);
	assert_true(length > 0);
	text[length] = '\0';
	assert_non_null(strstr(text, "after 5 s, and letting the process go on: "));

	/* It goes on as it was. */
	status_of(target, "TracerPid", value, sizeof(value));
	assert_string_equal(value, "0\n");
	do
		status_of(target, "State", value, sizeof(value));
	while (value[0] != 'R' && elapsed_ns(&began) < MUCH_NS);
	assert_int_equal(value[0], 'R');
	close(said[0]);
	close(said[1]);
	kill(target, SIGKILL);
	assert_int_equal(waitpid(target, &status, 0), target);
}

/* Stops the very process that holds the target: somebody else has to see to it that it goes on. */
static void stop_oneself(void *unused)
{
	(void)unused;
	raise(SIGSTOP);
}

/* Waits until nobody traces a process, and it runs. */
static void wait_until_let_go(pid_t pid)
{
	char state[64], tracer[64];

	do {
		status_of(pid, "State", state, sizeof(state));
		status_of(pid, "TracerPid", tracer, sizeof(tracer));
	} while (state[0] != 'R' || strcmp(tracer, "0\n") != 0);
}

/* A dump that is stopped in the middle of its pause is made to go on, and comes to its end. */
static void test_stopped_in_a_pause(void **state)
{
	pid_t target = start_runner(), dumper;
	int status;

	(void)state;
	alarm(MUCH_S);
	dumper = fork();
	if (dumper == 0) {
		struct target *opened;
		struct memory *memory;
		struct pauses pauses = {0};

		if (stop_guard_begin() || stop_guard_enter() || live_open(target, &opened))
			abort();
		memory = memory_create(target_read_pages, opened, 16);
		if (!memory || snapshot_paused(opened, memory, stop_oneself, NULL, &pauses))
			abort();
		stop_guard_leave();
		stop_guard_end();
		_exit(pauses.us > 0 && pauses.us < 5e6 ? 7 : 1);
	}
	assert_true(dumper > 0);
	assert_int_equal(waitpid(dumper, &status, 0), dumper);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	wait_until_let_go(target);
	alarm(0);
	kill(target, SIGKILL);
	assert_int_equal(waitpid(target, &status, 0), target);
}

/* Has the first thread of a process, and those after it, stopped as a debugger does. */
static void hold_all(pid_t pid)
{
	size_t count;
	pid_t *tids = live_list_threads(pid, &count);

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(ptrace(PTRACE_SEIZE, tids[i], NULL, NULL), 0);
		assert_int_equal(ptrace(PTRACE_INTERRUPT, tids[i], NULL, NULL), 0);
	}
	free(tids);
}

/* Of one that a debugger has stopped in the middle of its pause nothing is to be had: it is killed. */
static void test_held_by_a_debugger(void **state)
{
	pid_t target = start_runner(), dumper;
	int said[2], status = 0;
	char byte;

	(void)state;
	alarm(MUCH_S);
	assert_int_equal(pipe(said), 0);
	dumper = fork();
	if (dumper == 0) {
		dup2(said[1], STDOUT_FILENO);
		if (stop_guard_begin() || stop_guard_enter())
			abort();
		pause_for_ever(target);
	}
	assert_true(dumper > 0);
	assert_int_equal(read(said[0], &byte, 1), 1);
	hold_all(dumper);
	wait_until_let_go(target);
	/* Its threads have ended for their tracer first. */
	while (waitpid(-1, &status, __WALL) != dumper || WIFSTOPPED(status))
		;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	alarm(0);
	close(said[0]);
	close(said[1]);
	kill(target, SIGKILL);
	assert_int_equal(waitpid(target, &status, 0), target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pause_without_end),
	    cmocka_unit_test(test_stopped_in_a_pause),
	    cmocka_unit_test(test_held_by_a_debugger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
