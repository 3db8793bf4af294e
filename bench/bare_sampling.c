/*
 * The least that sampling a thread can cost: so many times a second it sleeps until it is time, copies the given
 * memory, and does nothing with it; with "pause", it stops the thread meanwhile, and takes its registers.
 *
 *   bare_sampling PID RATE SECONDS sleep|read|pause < PIECES     PIECES: lines of ADDRESS (hexadecimal) and LENGTH
 *
 * As rbdump does, it goes before others, and stays away from the CPU that the thread runs on. Prints how many samples
 * it took, its CPU time for each, the median and the 99th percentile of the pauses, in microseconds, how many samples
 * were late or missed, and how many of these were missed.
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#define MAX_PIECES  1024
#define MAX_BYTES   (64UL << 20)
#define MAX_SAMPLES 1000000

/* After so much of a period, and so long, a sample is late (sampling/deadlines.c). */
#define LATE_SHARE 10
#define LATE_US	   100

/* How often it looks where the thread runs. */
#define PLACE_EACH 64

/* How long it looks for a stop before it sleeps until it comes. */
#define AWAKE_US 50

static struct iovec pieces[MAX_PIECES];
static size_t nr_pieces, nr_bytes;
static double pauses[MAX_SAMPLES];
static char *buffer;

static double microseconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int read_pieces(void)
{
	unsigned long long address, length;

	while (nr_pieces < MAX_PIECES && scanf("%llx %llu", &address, &length) == 2) {
		if (length > MAX_BYTES - nr_bytes)
			return -1;
		pieces[nr_pieces].iov_base = (void *)(uintptr_t)address;
		pieces[nr_pieces++].iov_len = length;
		nr_bytes += length;
	}
	buffer = calloc(1, nr_bytes + 1);
	return buffer ? 0 : -1;
}

/* The CPU that a thread was on last (proc(5), stat); -1 if that is not known. */
static int cpu_of(pid_t pid)
{
	char path[64], text[1024] = "", *field;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
	file = fopen(path, "re");
	if (!file || !fgets(text, sizeof(text), file))
		text[0] = '\0';
	if (file)
		fclose(file);
	field = strrchr(text, ')');
	for (int i = 2; field && i < 39; i++)
		field = strchr(field + 1, ' ');
	return field ? (int)strtol(field, NULL, 10) : -1;
}

static void stay_away(pid_t pid, const cpu_set_t *all)
{
	cpu_set_t set = *all;
	int cpu = cpu_of(pid);

	if (cpu < 0 || CPU_COUNT(all) < 2)
		return;
	CPU_CLR((size_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int copy(pid_t pid)
{
	struct iovec local = {buffer, nr_bytes};

	return process_vm_readv(pid, &local, 1, pieces, nr_pieces, 0) == (ssize_t)nr_bytes ? 0 : -1;
}

/* Waits for a stop: awake at first, as rbdump does (target/tracee.c). */
static pid_t wait_for_stop(pid_t pid, int *status)
{
	double began = microseconds(CLOCK_MONOTONIC);

	while (microseconds(CLOCK_MONOTONIC) - began < AWAKE_US) {
		pid_t found = waitpid(pid, status, __WALL | WNOHANG);

		if (found != 0)
			return found;
	}
	return waitpid(pid, status, __WALL);
}

static int stop_and_copy(pid_t pid)
{
	struct user_regs_struct registers;
	int status, failed;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 ||
	    wait_for_stop(pid, &status) != pid || !WIFSTOPPED(status))
		return -1;
	failed = copy(pid) != 0 || ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0;
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) != 0 || failed ? -1 : 0;
}

/*
 * How many samples are late, or were missed, if one begins now: as rbdump counts them. What was missed is skipped, and
 * added to *all_missed.
 */
static size_t skip_missed(struct timespec *due, double period, size_t *all_missed)
{
	double behind = microseconds(CLOCK_MONOTONIC) - ((double)due->tv_sec * 1e6 + (double)due->tv_nsec / 1e3);
	size_t missed = behind > 0 ? (size_t)(behind / period) : 0;

	due->tv_nsec += (long)((double)missed * period * 1e3);
	due->tv_sec += due->tv_nsec / 1000000000;
	due->tv_nsec %= 1000000000;
	behind -= (double)missed * period;
	*all_missed += missed;
	return missed + (behind > period / LATE_SHARE && behind > LATE_US);
}

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 5 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	double rate = argc == 5 ? strtod(argv[2], NULL) : 0, seconds = argc == 5 ? strtod(argv[3], NULL) : 0, end, cpu;
	struct timespec due;
	cpu_set_t all;
	size_t count = 0, late = 0, missed = 0;

	if (pid <= 0 || rate <= 0 || seconds <= 0 || read_pieces() != 0) {
		fprintf(stderr, "usage: bare_sampling PID RATE SECONDS sleep|read|pause < PIECES\n");
		return 1;
	}
	sched_getaffinity(0, sizeof(all), &all);
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	clock_gettime(CLOCK_MONOTONIC, &due);
	end = microseconds(CLOCK_MONOTONIC) + seconds * 1e6;
	cpu = microseconds(CLOCK_PROCESS_CPUTIME_ID);
	for (; count < MAX_SAMPLES && microseconds(CLOCK_MONOTONIC) < end; count++) {
		double began;
		int failed = 0;

		due.tv_nsec += (long)(1e9 / rate);
		due.tv_sec += due.tv_nsec / 1000000000;
		due.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		late += skip_missed(&due, 1e6 / rate, &missed);
		if (count % PLACE_EACH == 0)
			stay_away(pid, &all);
		began = microseconds(CLOCK_MONOTONIC);
		if (argv[4][0] == 'r')
			failed = copy(pid);
		else if (argv[4][0] == 'p')
			failed = stop_and_copy(pid);
		pauses[count] = microseconds(CLOCK_MONOTONIC) - began;
		if (failed) {
			perror("bare_sampling");
			return 1;
		}
	}
	cpu = microseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	qsort(pauses, count, sizeof(*pauses), ascending);
	printf("%zu %.2f %.2f %.2f %zu %zu\n", count, cpu / (double)count, pauses[count / 2],
	       pauses[count - 1 - count / 100], late, missed);
	return 0;
}
