/* One thread of another process, stopped and stepped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/process_stat.h"
#include "target/tracee.h"

#define STOP_US	 1000000L
#define AWAKE_US 50L

/* How long the instruction takes that is stepped: longer than any patience would be. */
#define LONG_STEP_S 2

/* How many tracers are killed. */
#define TRACERS 5

static int block_child_signal(void **state)
{
	sigset_t child;

	(void)state;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	return sigprocmask(SIG_BLOCK, &child, NULL);
}

static int join(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Waits until a process sleeps in its read(). */
static void wait_for_sleep(pid_t pid)
{
	struct process_stat stat;

	do
		assert_true(process_stat_read("/proc", pid, &stat));
	while (stat.state != 'S');
}

/* A process that reads a byte, and then ends: with 7. */
static pid_t start_reader(int pipes[2])
{
	pid_t pid;
	char byte;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(syscall(SYS_read, pipes[0], &byte, 1) == 1 ? 7 : 1);
	return pid;
}

/*
 * Interrupted in a read(), a process is right at the instruction that begins it again. A step is over when that is, and
 * the process then goes on as if nothing had been: a trap flag that is left would kill it.
 */
static void test_long_step(void **state)
{
	struct tracee tracee;
	pid_t reader, writer;
	int pipes[2];

	(void)state;
	reader = start_reader(pipes);
	wait_for_sleep(reader);
	assert_int_equal(tracee_stop(reader, reader, AWAKE_US, STOP_US, &tracee), TRACEE_STOPPED);
	writer = fork();
	assert_true(writer >= 0);
	if (writer == 0) {
		sleep(LONG_STEP_S);
		_exit(write(pipes[1], "x", 1) == 1 ? 0 : 1);
	}
	assert_true(tracee_step(&tracee));
	assert_int_equal(tracee.registers.rax, 1);
	tracee_resume(&tracee);
	assert_int_equal(WEXITSTATUS(join(reader)), 7);
	assert_int_equal(join(writer), 0);
	close(pipes[0]);
	close(pipes[1]);
}

/* What ends while it is traced tells its tracer how, also as its parent. */
static void test_end(void **state)
{
	struct tracee tracee;
	pid_t reader;
	int pipes[2];

	(void)state;
	reader = start_reader(pipes);
	wait_for_sleep(reader);
	assert_int_equal(tracee_stop(reader, reader, AWAKE_US, STOP_US, &tracee), TRACEE_STOPPED);
	assert_false(tracee.reaped);
	assert_int_equal(kill(reader, SIGKILL), 0);
	while (tracee_step(&tracee))
		;
	tracee_resume(&tracee);
	if (tracee.reaped)
		assert_int_equal(WTERMSIG(tracee.status), SIGKILL);
	else
		assert_int_equal(WTERMSIG(join(reader)), SIGKILL);
	assert_int_equal(tracee_stop(reader, reader, AWAKE_US, STOP_US, &tracee), TRACEE_GONE);
	close(pipes[0]);
	close(pipes[1]);
}

/* One that is killed by its parent while it is stopped has ended for that parent, too, while its tracer goes on. */
static void test_killed_by_its_parent(void **state)
{
	int told[2], kill_it[2];
	struct tracee tracee;
	pid_t parent, child;

	(void)state;
	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(kill_it), 0);
	parent = fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		char byte;
		int status;
		pid_t pid = fork();

		if (pid == 0)
			for (;;)
				pause();
		if (write(told[1], &pid, sizeof(pid)) != sizeof(pid) || read(kill_it[0], &byte, 1) != 1)
			_exit(1);
		kill(pid, SIGKILL);
		if (write(told[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		_exit(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? 7 : 2);
	}
	assert_int_equal(read(told[0], &child, sizeof(child)), sizeof(child));
	wait_for_sleep(child);
	assert_int_equal(tracee_stop(child, child, AWAKE_US, STOP_US, &tracee), TRACEE_STOPPED);
	assert_int_equal(write(kill_it[1], "x", 1), 1);
	assert_int_equal(read(told[0], &child, sizeof(child)), sizeof(child));
	tracee_resume(&tracee);
	alarm(20);
	assert_int_equal(WEXITSTATUS(join(parent)), 7);
	alarm(0);
	for (int i = 0; i < 2; i++) {
		close(told[i]);
		close(kill_it[i]);
	}
}

static int told_by_handler;

static void tell(int signal)
{
	char byte = (char)signal;

	if (write(told_by_handler, &byte, 1) != 1)
		_exit(1);
}

/* A signal that is sent to a thread while it is stepped ends the steps, and reaches it: also the one that steps use. */
static void test_signals_while_stepped(void **state)
{
	static const int signals[] = {SIGTRAP, SIGUSR1, SIGTRAP};
	int wait[2], told[2];
	struct tracee tracee;
	pid_t pid;
	char byte;

	(void)state;
	assert_int_equal(pipe(wait), 0);
	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct sigaction action = {.sa_handler = tell, .sa_flags = SA_RESTART};

		told_by_handler = told[1];
		sigaction(SIGTRAP, &action, NULL);
		sigaction(SIGUSR1, &action, NULL);
		tell(0);
		_exit(read(wait[0], &byte, 1) == 1 ? 7 : 1);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		wait_for_sleep(pid);
		assert_int_equal(tracee_stop(pid, pid, AWAKE_US, STOP_US, &tracee), TRACEE_STOPPED);
		assert_int_equal(kill(pid, signals[i]), 0);
		assert_false(tracee_step(&tracee));
		assert_int_equal(tracee.pending_signal, signals[i]);
		tracee_resume(&tracee);
		assert_int_equal(read(told[0], &byte, 1), 1);
		assert_int_equal(byte, signals[i]);
	}
	assert_int_equal(write(wait[1], "x", 1), 1);
	assert_int_equal(WEXITSTATUS(join(pid)), 7);
	for (int i = 0; i < 2; i++) {
		close(wait[i]);
		close(told[i]);
	}
}

static _Atomic unsigned int *handled;

static void count(int signal)
{
	(void)signal;
	++*handled;
}

/* Stops a thread until that is about to take a signal, and is killed then. */
static _Noreturn void stop_and_be_killed(pid_t pid)
{
	struct tracee tracee;

	for (;;) {
		if (tracee_stop(pid, pid, AWAKE_US, STOP_US, &tracee) != TRACEE_STOPPED)
			_exit(1);
		if (tracee.pending_signal == SIGUSR1)
			kill(getpid(), SIGKILL);
		tracee_resume(&tracee);
	}
}

/* Each signal is handled once, also the one that a thread has stopped for whose tracer is killed before it goes on. */
static void test_signal_outlives_tracer(void **state)
{
	unsigned int sent = 0;
	pid_t pid, tracer;

	(void)state;
	handled = mmap(NULL, sizeof(*handled), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(handled != MAP_FAILED);
	*handled = 0;
	alarm(300);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigaction(SIGUSR1, &(struct sigaction){.sa_handler = count}, NULL);
		++*handled;
		for (;;)
			;
	}
	while (*handled == 0)
		;
	for (int round = 0; round < TRACERS; round++) {
		int status = 0;

		tracer = fork();
		assert_true(tracer >= 0);
		if (tracer == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			stop_and_be_killed(pid);
		}
		while (waitpid(tracer, &status, WNOHANG) == 0) {
			assert_int_equal(kill(pid, SIGUSR1), 0);
			sent++;
			/* What is lost is waited for in vain. */
			while (*handled < sent + 1)
				sched_yield();
		}
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	alarm(0);
	assert_int_equal(*handled, sent + 1);
	kill(pid, SIGKILL);
	join(pid);
	munmap((void *)handled, sizeof(*handled));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_long_step),
	    cmocka_unit_test(test_end),
	    cmocka_unit_test(test_killed_by_its_parent),
	    cmocka_unit_test(test_signals_while_stepped),
	    cmocka_unit_test(test_signal_outlives_tracer),
	};

	return cmocka_run_group_tests(tests, block_child_signal, NULL);
}
