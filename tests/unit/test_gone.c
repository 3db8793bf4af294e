/* A process that calls exec is another one, even if the new program has the addresses of the old one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "target/live.h"

#define AGAIN "--again"

/* The target: says that it runs, and becomes itself anew when it is told to; at the same addresses. */
static _Noreturn void run(char *program)
{
	char *arguments[] = {program, (char *)AGAIN, NULL}, letter = 'a';

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(STDOUT_FILENO, &letter, 1) != 1 || read(STDIN_FILENO, &letter, 1) != 1)
		_exit(1);
	execv("/proc/self/exe", arguments);
	_exit(1);
}

struct program {
	pid_t pid;
	int to, from;
};

static void start(struct program *ret)
{
	char *arguments[] = {(char *)"test_gone", (char *)AGAIN, NULL}, letter;
	int in[2], out[2];

	assert_true(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	ret->pid = fork();
	if (ret->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		personality(ADDR_NO_RANDOMIZE);
		execv("/proc/self/exe", arguments);
		_exit(1);
	}
	assert_true(ret->pid > 0);
	close(in[0]);
	close(out[1]);
	ret->to = in[1];
	ret->from = out[0];
	assert_int_equal(read(ret->from, &letter, 1), 1);
}

static void exec_again(const struct program *of)
{
	char letter = 'b';

	assert_int_equal(write(of->to, &letter, 1), 1);
	assert_int_equal(read(of->from, &letter, 1), 1);
}

static void end(const struct program *of)
{
	kill(of->pid, SIGKILL);
	assert_int_equal(waitpid(of->pid, NULL, 0), of->pid);
	close(of->to);
	close(of->from);
}

/* As if the kernel had refused to open /proc/PID/mem: it belongs to another user (live.c). */
static void do_without_mem(struct target *target)
{
	char path[64];

	close(target->memory_fd);
	target->memory_fd = -1;
	snprintf(path, sizeof(path), "/proc/%d/maps", target->pid);
	target->maps_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(target->maps_fd >= 0);
}

static void test_exec(void **state)
{
	(void)state;
	for (int with_mem = 0; with_mem < 2; with_mem++) {
		struct program program;
		struct target *target, *again;

		start(&program);
		assert_null(live_open(program.pid, &target));
		assert_true(target->memory_fd >= 0);
		if (!with_mem)
			do_without_mem(target);
		assert_false(live_is_gone(target));
		exec_again(&program);
		assert_null(live_open(program.pid, &again));
		/* The addresses do not tell. */
		assert_int_equal(target->nr_mappings, again->nr_mappings);
		assert_int_equal(target->mappings[0].start, again->mappings[0].start);
		assert_true(live_is_gone(target));
		if (!with_mem)
			do_without_mem(again);
		assert_false(live_is_gone(again));
		end(&program);
		assert_true(live_is_gone(again));
		target_close(target);
		target_close(again);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_exec)};

	if (argc > 1 && strcmp(argv[1], AGAIN) == 0)
		run(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
