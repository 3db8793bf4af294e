/*
 * Threads that sleep while their process is copied: their system calls go on, and what they wrote is copied as of one
 * moment although nobody stops them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/aio_abi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/memory.h"
#include "session/snapshot.h"
#include "target/live.h"
#include "target/sleeper.h"
#include "target/stopping.h"
#include "target/task.h"

#define MUCH_S	 60
#define CAPTURES 50
/* Longer than the test. */
#define LONG_S (10 * MUCH_S)

/* What the target and the test share; the counters are on pages of their own. */
struct shared {
	_Atomic int ready;    /* how many threads are about to sleep */
	_Atomic int returned; /* how many system calls have come back */
	_Atomic pid_t child;  /* of vfork(2) */
	_Alignas(MEMORY_PAGE) _Atomic uint64_t first;
	_Alignas(MEMORY_PAGE) _Atomic uint64_t second;
};

static struct shared *shared;

/* Nobody ever gives it anything. */
static int semaphore;

static void *sleep_in(void *argument)
{
	long (*call)(void) = (long (*)(void))argument;

	shared->ready++;
	call();
	shared->returned++;
	return NULL;
}

static long in_epoll_wait(void)
{
	struct epoll_event event;

	return epoll_wait(epoll_create1(0), &event, 1, LONG_S * 1000);
}

static long in_sigtimedwait(void)
{
	const struct timespec timeout = {.tv_sec = LONG_S};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return sigtimedwait(&set, NULL, &timeout);
}

static long in_semop(void)
{
	struct sembuf take = {.sem_op = -1};

	return semop(semaphore, &take, 1);
}

static long in_io_getevents(void)
{
	aio_context_t context = 0;
	struct io_event event;
	struct timespec timeout = {.tv_sec = LONG_S};

	if (syscall(SYS_io_setup, 1, &context) != 0)
		return -1;
	return syscall(SYS_io_getevents, context, 1, 1, &event, &timeout);
}

static long in_read_with_a_timeout(void)
{
	const struct timeval timeout = {.tv_sec = LONG_S};
	int ends[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		return -1;
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	return read(ends[0], &byte, 1);
}

/* Those that a stop ends with EINTR. */
static long (*const calls[])(void) = {in_epoll_wait, in_sigtimedwait, in_semop, in_io_getevents,
				      in_read_with_a_timeout};

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

static _Noreturn void sleep_in_calls(void)
{
	pthread_t threads[NR_CALLS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < NR_CALLS; i++)
		if (pthread_create(&threads[i], NULL, sleep_in, (void *)calls[i]) != 0)
			abort();
	for (size_t i = 0; i < NR_CALLS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

/* Counts in two places, with a sleep between rounds that is shorter than a copy. */
static void *count(void *unused)
{
	shared->ready++;
	for (;;) {
		shared->first++;
		shared->second++;
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
	return unused;
}

static _Noreturn void count_and_sleep(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&thread, NULL, count, NULL) != 0)
		abort();
	pthread_join(thread, NULL);
	_exit(0);
}

/* Beside that, the first thread waits in vfork(2), where nobody can stop it. */
static _Noreturn void count_beside_vfork(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&thread, NULL, count, NULL) != 0)
		abort();
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		shared->child = getpid();
		for (;;)
			pause();
	}
	_exit(0);
}

static pid_t start(void (*run)(void), int threads)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	alarm(MUCH_S);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		run();
	while (shared->ready < threads)
		sched_yield();
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	alarm(0);
}

static struct target *open_target(pid_t pid)
{
	struct target *target;

	assert_null(live_open(pid, &target));
	return target;
}

/* How often a process's threads have been given a CPU, in all. */
static uint64_t switches_of(pid_t pid)
{
	uint64_t sum = 0;
	size_t count;
	pid_t *tids = live_list_threads(pid, &count);

	for (size_t i = 0; i < count; i++) {
		struct task task;

		task_open(&task, pid, tids[i]);
		sum += task_look(&task, NULL).switches;
		task_close(&task);
	}
	free(tids);
	return sum;
}

/* Waits until each thread is asleep in a system call, and has been so for a while: it is where it is meant to be. */
static void wait_until_all_sleep(struct target *target)
{
	uint64_t before, after = 0;
	size_t asleep, count;

	do {
		pid_t *tids = live_list_threads(target->pid, &count);
		struct native_thread sleeper;

		before = after;
		asleep = 0;
		for (size_t i = 0; i < count; i++) {
			if (!sleeper_find(target, tids[i], &sleeper))
				continue;
			sleeper_forget(&sleeper);
			asleep++;
		}
		free(tids);
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
		after = switches_of(target->pid);
	} while (asleep < count || before != after);
}

/* None of the calls comes back, none of the threads is given a CPU, and all is known that a stop would tell. */
static void test_calls_go_on(void **state)
{
	pid_t pid = start(sleep_in_calls, NR_CALLS);
	struct target *target = open_target(pid);
	struct pauses pauses = {0};
	uint64_t switches;

	(void)state;
	wait_until_all_sleep(target);
	switches = switches_of(pid);
	for (unsigned int i = 0; i < CAPTURES; i++) {
		struct memory *memory = memory_create(target_read_pages, target, 16);

		assert_non_null(memory);
		assert_null(snapshot_paused(target, memory, NULL, NULL, &pauses));
		assert_int_equal(target->nr_threads, NR_CALLS + 1);
		for (size_t k = 0; k < target->nr_threads; k++) {
			assert_true(target->threads[k].stopped && target->threads[k].asleep);
			assert_true(target->threads[k].fs_base != 0);
		}
		memory_destroy(memory);
	}
	assert_int_equal(pauses.count, CAPTURES);
	assert_true(pauses.us == 0);
	assert_int_equal(switches_of(pid), switches);
	assert_int_equal(shared->returned, 0);
	target_close(target);
	end(pid);
}

/* What a stop tells of a thread is what is found of it without one. */
static void test_thread_pointer_is_that_of_the_registers(void **state)
{
	pid_t pid = start(sleep_in_calls, NR_CALLS);
	struct target *target = open_target(pid);
	uint64_t pointers[NR_CALLS + 1];

	(void)state;
	wait_until_all_sleep(target);
	assert_null(live_stop(target, true));
	assert_int_equal(target->nr_threads, NR_CALLS + 1);
	for (size_t i = 0; i < target->nr_threads; i++)
		pointers[i] = target->threads[i].fs_base;
	assert_false(live_woke(target));
	live_resume(target);
	assert_null(live_stop(target, false));
	assert_int_equal(target->nr_threads, NR_CALLS + 1);
	for (size_t i = 0; i < target->nr_threads; i++) {
		assert_false(target->threads[i].asleep);
		assert_true(target->threads[i].fs_base == pointers[i]);
	}
	live_resume(target);
	target_close(target);
	end(pid);
}

struct counters {
	struct memory *memory;
	uint64_t first, second;
};

/* One counter is read after the thread that counts has gone on, or had the time for that. */
static void read_counters(void *context)
{
	struct counters *counters = context;
	const uint64_t before = shared->first;

	assert_true(memory_read(counters->memory, (uintptr_t)&shared->second, &counters->second, 8));
	for (unsigned int i = 0; i < 50 && shared->first == before; i++)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	assert_true(memory_read(counters->memory, (uintptr_t)&shared->first, &counters->first, 8));
}

/*
 * A thread that is asleep when it is looked at, and then is not, is noticed: what is copied is of one moment. Whether it
 * wakes up in that time is up to the scheduler, so there are copies until it has happened: then there is a pause more.
 */
static void test_thread_that_wakes_up(void **state)
{
	pid_t pid = start(count_and_sleep, 1);
	struct target *target = open_target(pid);
	struct pauses pauses = {0};
	unsigned int copies = 0;

	(void)state;
	for (; copies < CAPTURES || pauses.count == copies; copies++) {
		struct counters counters = {.memory = memory_create(target_read_pages, target, 16)};

		assert_non_null(counters.memory);
		addresses_clear(&target->restless); /* as if it had never been seen to wake up */
		assert_null(snapshot_paused(target, counters.memory, read_counters, &counters, &pauses));
		assert_in_range(counters.first - counters.second, 0, 1);
		memory_destroy(counters.memory);
	}
	assert_true(pauses.us > 0);
	target_close(target);
	end(pid);
}

/* A thread that did not stop is let go before the copy is made again: it is not taken for that of another tracer. */
static void test_thread_that_cannot_be_stopped(void **state)
{
	pid_t pid = start(count_beside_vfork, 1);
	struct target *target = open_target(pid);
	struct pauses pauses = {0};
	unsigned int copies = 0;

	(void)state;
	while (shared->child == 0)
		sched_yield();
	for (; copies < CAPTURES || pauses.count == copies; copies++) {
		struct counters counters = {.memory = memory_create(target_read_pages, target, 16)};

		assert_non_null(counters.memory);
		addresses_clear(&target->restless);
		assert_null(snapshot_paused(target, counters.memory, read_counters, &counters, &pauses));
		assert_int_equal(target->nr_threads, 2);
		for (size_t k = 0; k < target->nr_threads; k++)
			assert_false(target->threads[k].refused);
		memory_destroy(counters.memory);
	}
	target_close(target);
	kill(shared->child, SIGKILL);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_calls_go_on),
	    cmocka_unit_test(test_thread_pointer_is_that_of_the_registers),
	    cmocka_unit_test(test_thread_that_wakes_up),
	    cmocka_unit_test(test_thread_that_cannot_be_stopped),
	};

	int failed;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	semaphore = semget(IPC_PRIVATE, 1, 0600);
	if (shared == MAP_FAILED || semaphore < 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	semctl(semaphore, 0, IPC_RMID);
	return failed;
}
