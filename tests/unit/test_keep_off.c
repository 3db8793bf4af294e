/* rbdump keeps off the CPUs that its target uses, and uses all of its own again when the target sleeps, or afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "session/keep_off.h"

/* Longer than it takes to notice where a thread runs, on a busy machine. */
#define MUCH_S 60

/* What the target is to do; it changes what it does when this changes. */
enum { REST, RUN };
static _Atomic int *wanted;

static cpu_set_t of(pid_t tid)
{
	cpu_set_t ret;

	assert_int_equal(sched_getaffinity(tid, sizeof(ret), &ret), 0);
	return ret;
}

static cpu_set_t mine;

static int first_of_mine(void)
{
	int cpu = 0;

	while (!CPU_ISSET((size_t)cpu, &mine))
		cpu++;
	return cpu;
}

/* Starts a process that runs on a CPU, or rests. */
static pid_t start(int cpu)
{
	pid_t pid;

	alarm(MUCH_S);
	*wanted = RUN;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		cpu_set_t one;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CPU_ZERO(&one);
		CPU_SET((size_t)cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		for (;;)
			if (*wanted == REST)
				usleep(1000);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	alarm(0);
}

static void *look(void *context)
{
	*(cpu_set_t *)context = of(0);
	return NULL;
}

static void test_off_and_back(void **state)
{
	const int cpu = first_of_mine();
	pid_t pid = start(cpu);
	struct keep_off *keep = keep_off_begin(pid);
	cpu_set_t allowed;
	pthread_t thread;

	(void)state;
	assert_non_null(keep);
	do
		allowed = of(0);
	while (CPU_ISSET((size_t)cpu, &allowed));
	assert_int_equal(CPU_COUNT(&allowed), CPU_COUNT(&mine) - 1);
	assert_null(thread_start(&thread, look, &allowed));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(CPU_ISSET((size_t)cpu, &allowed));
	*wanted = REST;
	do
		allowed = of(0);
	while (!CPU_EQUAL(&allowed, &mine));
	*wanted = RUN;
	do
		allowed = of(0);
	while (CPU_ISSET((size_t)cpu, &allowed));
	keep_off_end(keep);
	allowed = of(0);
	assert_true(CPU_EQUAL(&allowed, &mine));
	end(pid);
}

/* A process that ends meanwhile keeps no CPU. */
static void test_target_that_ends(void **state)
{
	pid_t pid = start(first_of_mine());
	struct keep_off *keep = keep_off_begin(pid);
	cpu_set_t allowed;

	(void)state;
	end(pid);
	alarm(MUCH_S);
	do
		allowed = of(0);
	while (!CPU_EQUAL(&allowed, &mine));
	alarm(0);
	keep_off_end(keep);
}

/* Who has only one CPU keeps it. */
static void test_one_cpu(void **state)
{
	pid_t pid = start(first_of_mine());
	cpu_set_t one, allowed;

	(void)state;
	CPU_ZERO(&one);
	CPU_SET((size_t)first_of_mine(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_null(keep_off_begin(pid));
	allowed = of(0);
	assert_true(CPU_EQUAL(&allowed, &one));
	assert_int_equal(sched_setaffinity(0, sizeof(mine), &mine), 0);
	keep_off_end(NULL);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_off_and_back),
	    cmocka_unit_test(test_target_that_ends),
	    cmocka_unit_test(test_one_cpu),
	};

	wanted = mmap(NULL, sizeof(*wanted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (wanted == MAP_FAILED || sched_getaffinity(0, sizeof(mine), &mine) != 0)
		return 1;
	if (CPU_COUNT(&mine) < 2)
		return cmocka_run_group_tests(tests + 2, NULL, NULL); /* the other tests need a CPU to move to */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
