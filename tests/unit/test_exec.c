/* A process whose last thread calls exec again and again, stopped at any moment of that: it goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "session/snapshot.h"
#include "target/live.h"
#include "target/stopping.h"
#include "target/tracee.h"

#define ROUNDS	 "--rounds"
#define ROUND_FD 100

/* How many stops there are, and how many of them are to have met an exec; which is waited for, on any machine. */
#define STOPS	 100
#define MET	 10
#define MUCH_S	 120
#define AWAKE_US 50L
#define STOP_US	 1000000L

/* How long the target may stand still. It takes some milliseconds a round. */
#define STILL_NS 10000000000L

/*
 * A stop comes this long after a round was seen to begin, each time somewhat longer: if it came at once each time, it
 * would meet the same moment of a round each time, which may be one in which there is no exec.
 */
#define MOMENT_STEP_NS 37000L
#define MOMENTS_NS     4000000L

/* Below the time after which a thread that does not stop is given up. Beside load, some captures take longer. */
#define CAPTURE_NS 400000000L

/* The kernel copies this much before it begins to exchange threads: so a thread is in exec most of the time. */
#define PADDING	 (100 * 1024)
#define PADDINGS 8

static _Atomic uint64_t *rounds;

static void *exec_again(void *unused)
{
	static char padding[PADDING];
	char *arguments[PADDINGS + 3] = {(char *)"/proc/self/exe", (char *)ROUNDS};

	/* It belongs to the thread, not to the process. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(padding, 'x', sizeof(padding) - 1);
	for (size_t i = 0; i < PADDINGS; i++)
		arguments[i + 2] = padding;
	execv(arguments[0], arguments);
	abort();
	return unused;
}

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* The target: counts a round, and has its last thread begin the next one. */
static void play_round(void)
{
	pthread_t thread;

	rounds = mmap(NULL, sizeof(*rounds), PROT_READ | PROT_WRITE, MAP_SHARED, ROUND_FD, 0);
	if (rounds == MAP_FAILED)
		abort();
	++*rounds;
	/* Who calls exec waits for the ends of all others, and those that are traced end when their tracer sees it. */
	if (pthread_create(&thread, NULL, sleep_on, NULL) != 0 || pthread_create(&thread, NULL, exec_again, NULL) != 0)
		abort();
	for (;;)
		pause();
}

static int set_up(void **state)
{
	static pid_t pid;
	sigset_t child;
	int fd = memfd_create("rounds", 0);

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	if (fd < 0 || ftruncate(fd, sizeof(*rounds)) != 0 || dup2(fd, ROUND_FD) < 0)
		return -1;
	close(fd);
	rounds = mmap(NULL, sizeof(*rounds), PROT_READ | PROT_WRITE, MAP_SHARED, ROUND_FD, 0);
	if (rounds == MAP_FAILED)
		return -1;
	pid = fork();
	if (pid == 0)
		exec_again(NULL);
	alarm(MUCH_S);
	*state = &pid;
	return pid > 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	const pid_t pid = *(pid_t *)*state;

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	munmap((void *)rounds, sizeof(*rounds));
	close(ROUND_FD);
	alarm(0);
	return 0;
}

/* Waits until the target has got on. */
static void check_goes_on(void)
{
	const uint64_t before = *rounds;
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	while (*rounds < before + 2)
		assert_true(elapsed_ns(&began) < STILL_NS);
}

/* Waits until the next moment of a round. */
static void wait_for_moment(unsigned int nr)
{
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	while (elapsed_ns(&began) < (long)nr * MOMENT_STEP_NS % MOMENTS_NS)
		continue;
}

/* Its last thread; 0 if it has but one just now. */
static pid_t last_thread(pid_t pid)
{
	size_t count;
	pid_t *tids = live_list_threads(pid, &count), tid = 0;

	for (size_t i = 0; i < count; i++)
		if (tids[i] != pid)
			tid = tids[i];
	free(tids);
	return tid;
}

/* As `record` stops a thread: the thread that traces goes on after that. */
static void test_thread(void **state)
{
	const pid_t pid = *(pid_t *)*state;
	unsigned int met = 0;

	for (unsigned int i = 0; i < STOPS || met < MET; i++) {
		struct tracee tracee;
		pid_t tid;

		wait_for_moment(i);
		tid = last_thread(pid);
		if (tid == 0)
			continue;
		if (tracee_stop(pid, tid, AWAKE_US, STOP_US, &tracee) == TRACEE_GONE && tracee.seized)
			abort();
		met += !tracee.stopped && !tracee.reaped;
		tracee_resume(&tracee);
		check_goes_on();
	}
}

/* As a dump stops all. */
static void test_process(void **state)
{
	const pid_t pid = *(pid_t *)*state;
	unsigned int copied = 0, slow = 0;
	long took_ns;

	for (unsigned int i = 0; i < STOPS; i++) {
		struct target *target;
		struct memory *memory;
		struct error *error;
		struct pauses pauses = {0};
		struct timespec began;

		wait_for_moment(i);
		error = live_open(pid, &target);
		if (!error) {
			memory = memory_create(target_read_pages, target, 16);
			assert_non_null(memory);
			clock_gettime(CLOCK_MONOTONIC, &began);
			error = snapshot_paused(target, memory, NULL, NULL, &pauses);
			took_ns = elapsed_ns(&began);
			assert_true(took_ns < STILL_NS);
			slow += took_ns >= CAPTURE_NS;
			copied += error == NULL;
			memory_destroy(memory);
			target_close(target);
		}
		error_destroy(error);
		check_goes_on();
	}
	/* In the midst of an exec there may be nothing that could be opened, or stopped. */
	assert_true(copied > STOPS / 2);
	assert_true(slow <= STOPS / 20);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_thread, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_process, set_up, tear_down),
	};

	if (argc > 1 && strcmp(argv[1], ROUNDS) == 0)
		play_round();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
