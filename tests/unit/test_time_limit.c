/* When the time is over, rbdump ends, also where it waits in the kernel and no signal handler would run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/time_limit.h"

/* Longer than that is no limit, on a busy machine. */
#define MUCH_S 60

/* What the one that works waits for never comes; its own child does, which is done when `ends` is closed. */
static _Noreturn void wait_in_kernel(const int *ends)
{
	char byte;

	close(ends[1]);
	/* The parent of a vfork() waits for its child as it would for a page: only what kills it ends that. */
	if (vfork() == 0) {
		ssize_t length = read(ends[0], &byte, 1);

		_exit(length != 0);
	}
	abort();
}

static void test_wait_in_kernel(void **state)
{
	static const char expected[] = "rbdump: process 4711: nothing to show after 1 s: rbdump was searching for "
				       "debug info to make a layout; ";
	int ends[2], said[2], status;
	char text[512];
	ssize_t length;
	pid_t dumper;

	(void)state;
	alarm(MUCH_S);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(said), 0);
	dumper = fork();
	if (dumper == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(said[1], STDERR_FILENO);
		if (time_limit_begin("process", 4711, 1))
			abort();
		time_limit_is_of(TIME_LIMIT_DEBUG_INFO);
		wait_in_kernel(ends);
	}
	assert_true(dumper > 0);
	assert_int_equal(waitpid(dumper, &status, 0), dumper);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_FAILED);
	length = read(said[0], text, sizeof(text) - 1);
	assert_true(length > 0);
	text[length] = '\0';
	assert_int_equal(strncmp(text, expected, sizeof(expected) - 1), 0);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(said[i]);
	}
	alarm(0);
}

/* One after the other, as for many processes. */
static void test_one_after_the_other(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_null(time_limit_begin("the core of process", 4711, 1));
		time_limit_is_of(i % 2 ? TIME_LIMIT_DEBUG_INFO : TIME_LIMIT_LOOK);
		time_limit_end();
	}
	time_limit_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_wait_in_kernel),
	    cmocka_unit_test(test_one_after_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
