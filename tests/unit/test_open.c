/* A process is opened only if it is the one that was meant, although its pid may have been given to another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/open.h"
#include "target/process_stat.h"

static void assert_cannot_be_opened(const struct target_options *options, bool no_ruby, const char *why)
{
	struct session *session;
	struct trace *trace;
	struct error *error = session_open_target(options, true, NULL, &session, &trace);

	assert_non_null(error);
	assert_int_equal(error->no_ruby, no_ruby);
	if (!strstr(error->message, why))
		fail_msg("%s", error->message);
	error_destroy(error);
}

static void test_reused_pid(void **state)
{
	struct target_options options = {.pid = fork()};
	struct process_stat stat;

	(void)state;
	if (options.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(options.pid > 0);
	assert_true(process_stat_read("/proc", options.pid, &stat));
	/* The process that was meant; and any. */
	options.started = stat.started;
	assert_cannot_be_opened(&options, true, "Ruby");
	options.started = 0;
	assert_cannot_be_opened(&options, true, "Ruby");
	/* One that had this pid before. */
	options.started = stat.started - 1;
	assert_cannot_be_opened(&options, false, "has ended");
	kill(options.pid, SIGKILL);
	assert_int_equal(waitpid(options.pid, NULL, 0), options.pid);
	options.started = stat.started;
	assert_cannot_be_opened(&options, false, "no process");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_reused_pid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
