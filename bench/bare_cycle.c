/*
 * The least that a look at a stopped process can cost: every thread is seized, interrupted, waited for and asked for
 * its registers, the given memory is copied, and all threads go on. Prints how long that took, in microseconds.
 *
 *   bare_cycle PID < PIECES     PIECES: lines of ADDRESS (hexadecimal) and LENGTH (bytes, decimal)
 *
 * make bench takes the pieces from what rbdump itself copies, so that both copy the same bytes in the same state of the
 * machine. One process makes one cycle, as rbdump does. Unlike rbdump it knows the threads beforehand.
 */
#include <dirent.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#define MAX_THREADS 32768
#define MAX_PIECES  65536
#define MAX_BYTES   (256UL << 20)

/* The most remote pieces that one process_vm_readv takes (IOV_MAX). */
#define PIECES_PER_CALL 1024

static struct iovec pieces[MAX_PIECES];
static pid_t tids[MAX_THREADS];

static size_t read_pieces(size_t *bytes)
{
	unsigned long long address, length;
	size_t count = 0;

	*bytes = 0;
	while (count < MAX_PIECES && scanf("%llx %llu", &address, &length) == 2) {
		if (length > MAX_BYTES - *bytes)
			return 0;
		pieces[count].iov_base = (void *)(uintptr_t)address;
		pieces[count++].iov_len = length;
		*bytes += length;
	}
	return count;
}

/* 0 if there are more than can be stopped: half of a cycle is none. */
static size_t list_threads(pid_t pid)
{
	char path[64];
	size_t count = 0;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && count < MAX_THREADS)
			tids[count] = tid;
		count += tid > 0;
	}
	closedir(dir);
	return count <= MAX_THREADS ? count : 0;
}

static char *buffer; /* what is copied; kept until the end */

/* Seizes and interrupts all, then takes the registers of each once it stands still. */
static int stop(size_t nr_threads)
{
	for (size_t i = 0; i < nr_threads; i++)
		if (ptrace(PTRACE_SEIZE, tids[i], NULL, NULL) != 0 ||
		    ptrace(PTRACE_INTERRUPT, tids[i], NULL, NULL) != 0)
			return -1;
	for (size_t i = 0; i < nr_threads; i++) {
		struct user_regs_struct registers;
		int status;
		pid_t tid;

		/* Sleeping in waitpid() would add this process's own way back onto a CPU to the pause. */
		while ((tid = waitpid(tids[i], &status, __WALL | WNOHANG)) == 0)
			sched_yield();
		if (tid < 0 || !WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, tids[i], NULL, &registers) != 0)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 2 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	size_t bytes, copied = 0, nr_pieces = read_pieces(&bytes), nr_threads = pid > 0 ? list_threads(pid) : 0;
	struct timespec began, ended;

	buffer = malloc(bytes + 1);
	if (nr_pieces == 0 || nr_threads == 0 || !buffer) {
		fprintf(stderr, "usage: bare_cycle PID < PIECES; of no more than %d threads\n", MAX_THREADS);
		return 1;
	}
	memset(buffer, 1, bytes + 1); /* no page faults while the target is stopped */
	clock_gettime(CLOCK_MONOTONIC, &began);
	/* On failure the kernel detaches what is seized when this process ends. */
	if (stop(nr_threads) != 0) {
		perror("bare_cycle: a thread could not be stopped");
		return 1;
	}
	for (size_t done = 0; done < nr_pieces; done += PIECES_PER_CALL) {
		size_t count = nr_pieces - done < PIECES_PER_CALL ? nr_pieces - done : PIECES_PER_CALL;
		struct iovec local = {.iov_base = buffer + copied, .iov_len = bytes - copied};
		ssize_t n = process_vm_readv(pid, &local, 1, pieces + done, count, 0);

		if (n < 0)
			break;
		copied += (size_t)n;
	}
	for (size_t i = 0; i < nr_threads; i++)
		ptrace(PTRACE_DETACH, tids[i], NULL, NULL);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	if (copied != bytes) {
		fprintf(stderr, "bare_cycle: only %zu of %zu bytes could be copied\n", copied, bytes);
		return 1;
	}
	printf("%.1f\n", (double)(ended.tv_sec - began.tv_sec) * 1e6 + (double)(ended.tv_nsec - began.tv_nsec) / 1e3);
	return 0;
}
