/* The kernel tells which processes have called exec, and of nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/execs.h"

#define MUCH_S 60

struct wanted {
	pid_t pid;
	unsigned int told;
};

static void note(void *context, pid_t pid)
{
	struct wanted *wanted = context;

	wanted->told += pid == wanted->pid;
}

/* A process that waits for a byte, and then becomes another program, or only changes its name. */
static struct wanted run(struct execs *execs, const char *program)
{
	struct wanted wanted = {0};
	int ends[2], status;
	char byte = 'x';

	assert_int_equal(pipe(ends), 0);
	wanted.pid = fork();
	assert_true(wanted.pid >= 0);
	if (wanted.pid == 0) {
		if (read(ends[0], &byte, 1) != 1)
			abort();
		prctl(PR_SET_NAME, "renamed");
		if (program)
			execl(program, program, NULL);
		_exit(program != NULL);
	}
	(void)execs_take(execs, note, &wanted);
	assert_int_equal(wanted.told, 0);
	assert_int_equal(write(ends[1], &byte, 1), 1);
	assert_int_equal(waitpid(wanted.pid, &status, 0), wanted.pid);
	assert_int_equal(status, 0);
	assert_true(execs_take(execs, note, &wanted));
	close(ends[0]);
	close(ends[1]);
	return wanted;
}

static void test_told(void **state)
{
	struct execs *execs = execs_create();

	(void)state;
	if (!execs)
		skip(); /* kernel.perf_event_paranoid */
	alarm(MUCH_S);
	assert_int_equal(run(execs, "/bin/true").told, 1);
	assert_int_equal(run(execs, NULL).told, 0);
	execs_destroy(execs);
	alarm(0);
}

/* Who may not know is told that. */
static void test_not_allowed(void **state)
{
	struct wanted wanted = {0};

	(void)state;
	assert_false(execs_take(NULL, note, &wanted));
	assert_int_equal(wanted.told, 0);
	execs_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_told),
	    cmocka_unit_test(test_not_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
