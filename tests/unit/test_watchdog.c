/* A capture whose target does not answer is ended, and no other. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/watchdog.h"

/* Longer than a read may take. */
#define LONG_NS ((WATCHDOG_S + 2) * 1000000000L)

/* Reads for ever. */
static void hang(void)
{
	watchdog_reads(READING_NAMES);
	for (;;)
		pause();
}

/* Reads again and again. */
static void go_on(void)
{
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	while (elapsed_ns(&began) < LONG_NS) {
		watchdog_reads(READING_STACKS);
		nanosleep(&(struct timespec){.tv_nsec = 900000000}, NULL);
		watchdog_has_read(READING_STACKS);
	}
}

/* Has nothing to read: its target is none that runs. */
static void wait_long(void)
{
	sleep(WATCHDOG_S + 2);
}

static pid_t start(void (*what)(void), int errors)
{
	pid_t pid = fork();

	if (pid == 0) {
		dup2(errors, STDERR_FILENO);
		if (watchdog_begin(4711))
			_exit(EXIT_USAGE);
		what();
		_exit(EXIT_COMPLETE);
	}
	return pid;
}

static int end_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_watchdog(void **state)
{
	int ends[2];
	char text[256] = "";
	pid_t hangs, goes_on, waits;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	hangs = start(hang, ends[1]);
	goes_on = start(go_on, ends[1]);
	waits = start(wait_long, ends[1]);
	close(ends[1]);
	assert_int_equal(end_of(hangs), EXIT_FAILED);
	assert_int_equal(end_of(goes_on), EXIT_COMPLETE);
	assert_int_equal(end_of(waits), EXIT_COMPLETE);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(
	    text, "rbdump: process 4711 is no longer recorded: a read of its memory has not returned for 5 s\n");
	assert_int_equal(read(ends[0], text, 1), 0);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_watchdog)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
