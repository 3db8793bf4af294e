/* What a process was started with; and that rbdump does not wait for ever for a file of procfs or for the target's memory. */
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/process_arguments.h"
#include "synthetic.h"

#define PID 4711

/* Longer than that is no limit, on a busy machine. */
#define MUCH_S 60

enum blocking { NOTHING, COMMAND_LINE, ENVIRONMENT, MEMORY, BLOCKING };

static struct {
	char proc[64], folder[96];
	struct target_operations operations;
	struct target target;
	struct session session;
} scene;

static void no_pages(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	(void)target;
	(void)pages;
	(void)buffer;
	for (size_t i = 0; i < count; i++)
		ok[i] = false;
}

/* Like a page that a file system does not give. */
static void wait_for_pages(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	int ends[2];
	char byte;

	if (pipe(ends) != 0 || read(ends[0], &byte, 1) != 0)
		abort();
	no_pages(target, pages, count, buffer, ok);
}

static char *file_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", scene.folder, name);
	return path;
}

/* To open a FIFO that nobody writes to does not return. */
static void put_file(const char *name, const char *bytes, size_t length, bool blocks)
{
	FILE *file;

	if (blocks) {
		assert_int_equal(mkfifo(file_of(name), 0600), 0);
		return;
	}
	file = fopen(file_of(name), "we");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	fclose(file);
}

static void make(struct synthetic *s, enum blocking blocking)
{
	static const char line[] = "ruby\0-W0\0script", environment[] = "HOME=/root\0SECRET=x=y\0nothing";

	strcpy(scene.proc, "/tmp/rbdump-arguments-XXXXXX");
	assert_non_null(mkdtemp(scene.proc));
	snprintf(scene.folder, sizeof(scene.folder), "%s/%d", scene.proc, PID);
	assert_int_equal(mkdir(scene.folder, 0700), 0);
	put_file("cmdline", line, sizeof(line), blocking == COMMAND_LINE);
	put_file("environ", environment, sizeof(environment), blocking == ENVIRONMENT);
	scene.operations = (struct target_operations){
	    .name = "process", .runs = true, .read_pages = blocking == MEMORY ? wait_for_pages : no_pages};
	scene.target = (struct target){.operations = &scene.operations, .pid = PID};
	scene.session = (struct session){.target = &scene.target, .ruby = s->ruby};
	scene.session.ruby.vm = SYNTHETIC_BASE;
}

static void discard(void)
{
	unlink(file_of("cmdline"));
	unlink(file_of("environ"));
	rmdir(scene.folder);
	rmdir(scene.proc);
}

static void test_what_is_read(void **state)
{
	make(*state, NOTHING);
	/* Twice: the clock of the first has ended. */
	for (int i = 0; i < 2; i++) {
		struct trace *trace = trace_create();

		assert_non_null(trace);
		assert_true(session_add_arguments(scene.proc, &scene.session, MUCH_S, trace));
		assert_int_equal(trace->arguments->nr_line, 3);
		assert_string_equal(trace->arguments->line[2], "script");
		assert_int_equal(trace->arguments->nr_names, 2);
		assert_string_equal(trace->arguments->names[1], "SECRET");
		assert_null(trace->arguments->program_name);
		trace_destroy(trace);
	}
	discard();
}

/* rbdump ends, and says what it was doing. */
static void test_time_limit(void **state)
{
	static const char expected[] = "rbdump: process 4711: nothing to show after 1 s: rbdump was still reading the "
				       "command line and the environment; omit --args, or allow more time "
				       "(--time-limit SECONDS)\n";

	alarm(MUCH_S);
	for (enum blocking blocking = COMMAND_LINE; blocking < BLOCKING; blocking++) {
		char text[512] = "";
		int said[2], status;
		pid_t dumper;

		make(*state, blocking);
		assert_int_equal(pipe(said), 0);
		dumper = fork();
		if (dumper == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(MUCH_S / 2);
			dup2(said[1], STDERR_FILENO);
			session_add_arguments(scene.proc, &scene.session, 1, trace_create());
			_exit(EXIT_COMPLETE);
		}
		assert_true(dumper > 0);
		assert_int_equal(waitpid(dumper, &status, 0), dumper);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), EXIT_FAILED);
		assert_true(read(said[0], text, sizeof(text) - 1) > 0);
		assert_string_equal(text, expected);
		close(said[0]);
		close(said[1]);
		discard();
	}
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_what_is_read, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_time_limit, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
