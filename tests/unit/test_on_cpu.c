/* Whether a thread of another process runs, asked for round after round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sampling/on_cpu.h"
#include "target/process_stat.h"

/* More rounds than are needed until the kernel tells, and more than one that tells too often is given. */
#define MANY 2000

enum order { SPIN, READ, SLEEP, END };

/* A process of one thread that does what it is told to, and what is told of it. */
struct other {
	volatile int *order;
	int pipes[2];
	pid_t pid;
	struct task task;
	struct on_cpu on_cpu;
};

static void obey(const struct other *other)
{
	const struct timespec moment = {.tv_nsec = 1000};
	char byte;

	for (;;)
		switch (*other->order) {
		case SPIN:
			break;
		case READ:
			if (read(other->pipes[0], &byte, 1) != 1)
				_exit(1);
			*other->order = SPIN;
			break;
		case SLEEP:
			nanosleep(&moment, NULL);
			break;
		default:
			_exit(0);
		}
}

static void begin(struct other *other, bool undisturbed)
{
	void *shared = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(shared, MAP_FAILED);
	other->order = shared;
	assert_int_equal(pipe(other->pipes), 0);
	other->pid = fork();
	assert_true(other->pid >= 0);
	if (other->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		obey(other);
	}
	task_open(&other->task, other->pid, other->pid);
	on_cpu_init(&other->on_cpu, undisturbed);
}

static bool runs(struct other *other)
{
	return on_cpu_runs(&other->on_cpu, other->pid, &other->task);
}

static void end(struct other *other)
{
	*other->order = END;
	assert_int_equal(waitpid(other->pid, NULL, 0), other->pid);
	for (int i = 0; i < MANY; i++)
		assert_false(runs(other));
	on_cpu_clear(&other->on_cpu);
	assert_int_equal(other->on_cpu.event.ring.fd, -1);
	task_close(&other->task);
	close(other->pipes[0]);
	close(other->pipes[1]);
	munmap((void *)other->order, sizeof(int));
}

static void wait_for_sleep(const struct other *other)
{
	struct process_stat stat;

	do
		assert_true(process_stat_read("/proc", other->pid, &stat));
	while (stat.state != 'S');
}

/* Asks until the kernel tells of it, if that is allowed here. */
static void be_told(struct other *other)
{
	for (int i = 0; i < MANY && other->on_cpu.event.ring.fd < 0; i++)
		assert_true(runs(other));
	if (!other->on_cpu.may_tell) {
		end(other);
		skip();
	}
	assert_true(other->on_cpu.event.ring.fd >= 0);
}

/* Whether it is known to run without a look: /proc is not there to be asked. It may be preempted in between. */
static bool is_known_to_run(struct other *other)
{
	for (int i = 0; i < MANY; i++)
		if (runs(other) && on_cpu_runs(&other->on_cpu, other->pid, &TASK_CLOSED))
			return true;
	return false;
}

static void wake(const struct other *other)
{
	assert_int_equal(write(other->pipes[1], "x", 1), 1);
	while (*other->order != SPIN)
		;
}

static void sleep_and_go_on(struct other *other)
{
	*other->order = READ;
	wait_for_sleep(other);
	/* It says that it sleeps a moment before it is taken from its CPU. */
	alarm(60);
	while (runs(other))
		;
	alarm(0);
	for (int i = 0; i < MANY; i++)
		assert_false(runs(other));
	wake(other);
	assert_true(runs(other));
}

static void test_told(void **state)
{
	struct other other;

	(void)state;
	begin(&other, true);
	for (int i = 0; i < 3; i++) {
		be_told(&other);
		assert_true(is_known_to_run(&other));
		sleep_and_go_on(&other);
	}
	be_told(&other);
	assert_true(is_known_to_run(&other));
	end(&other);
}

static void test_asked_for(void **state)
{
	struct other other;

	(void)state;
	begin(&other, false);
	for (int i = 0; i < MANY; i++)
		assert_true(runs(&other));
	assert_int_equal(other.on_cpu.event.ring.fd, -1);
	assert_false(on_cpu_runs(&other.on_cpu, other.pid, &TASK_CLOSED));
	sleep_and_go_on(&other);
	end(&other);
}

/* Of one that is switched thousands of times a second the kernel tells no longer: it takes the thread's time. */
static void test_told_too_often(void **state)
{
	const struct timespec round = {.tv_nsec = 1000000};
	struct other other;

	(void)state;
	begin(&other, true);
	be_told(&other);
	*other.order = SLEEP;
	for (int i = 0; i < MANY && other.on_cpu.event.ring.fd >= 0; i++) {
		nanosleep(&round, NULL);
		runs(&other);
	}
	assert_int_equal(other.on_cpu.event.ring.fd, -1);
	*other.order = READ;
	wake(&other);
	be_told(&other);
	end(&other);
}

/* Nor of one that is not asked for. */
static void test_rests(void **state)
{
	struct other other;

	(void)state;
	begin(&other, true);
	be_told(&other);
	/* In every other round it is. */
	for (int i = 0; i < 100; i++) {
		on_cpu_round(&other.on_cpu);
		on_cpu_round(&other.on_cpu);
		assert_true(runs(&other));
	}
	assert_true(other.on_cpu.event.ring.fd >= 0);
	/* It is not, for eight rounds. */
	for (int i = 0; i < 8; i++)
		on_cpu_round(&other.on_cpu);
	assert_true(other.on_cpu.event.ring.fd >= 0);
	on_cpu_round(&other.on_cpu);
	assert_int_equal(other.on_cpu.event.ring.fd, -1);
	be_told(&other);
	end(&other);
}

/* What is known is known of one thread. */
static void test_another(void **state)
{
	struct other first, second;

	(void)state;
	begin(&first, true);
	begin(&second, true);
	*second.order = READ;
	wait_for_sleep(&second);
	be_told(&first);
	assert_true(is_known_to_run(&first));
	assert_false(on_cpu_runs(&first.on_cpu, second.pid, &second.task));
	assert_int_equal(first.on_cpu.event.ring.fd, -1);
	assert_true(runs(&first));
	end(&first);
	wake(&second);
	end(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_told),  cmocka_unit_test(test_asked_for), cmocka_unit_test(test_told_too_often),
	    cmocka_unit_test(test_rests), cmocka_unit_test(test_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
