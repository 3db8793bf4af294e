#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

#include "memory/memory.h"
#include "moments.h"
#include "target/diagnose.h"
#include "target/hold.h"
#include "target/live.h"
#include "target/process_stat.h"
#include "target/stop.h"

#if !defined(__x86_64__)
#error "registers are known for x86_64 only: see native_thread and take_registers()"
#endif

/* The most remote pieces that one process_vm_readv takes (IOV_MAX). */
#define MAX_PIECES 1024

/*
 * How long a thread may take to stop: one that can run has to be given a CPU first; one in an uninterruptible sleep,
 * such as vfork(2), which Ruby starts programs with, can take for ever, and runs no Ruby code meanwhile. And how often
 * new threads are looked for.
 */
#define STOP_TIMEOUT_NS	 500000000L
#define STOP_PATIENCE_NS 5000000L
#define STOP_ROUNDS	 32

/* How long to sleep between two looks for a stop that the kernel has not told of. */
#define LOOK_NS 1000000L

/* Adds what one line of /proc/PID/maps tells. False if out of memory. */
static bool add_mapping(struct target *target, size_t *capacity, char *line)
{
	unsigned long start, end, offset, inode;
	unsigned int major, minor;
	int name = 0;
	struct mapping *mapping;

	sscanf(line, "%lx-%lx %*s %lx %x:%x %lu %n", &start, &end, &offset, &major, &minor, &inode, &name);
	if (name == 0)
		return true;
	line[strcspn(line, "\n")] = '\0';
	if (target->nr_mappings == *capacity) {
		size_t more = *capacity ? *capacity * 2 : 256;
		struct mapping *mappings = reallocarray(target->mappings, more, sizeof(*mappings));

		if (!mappings)
			return false;
		target->mappings = mappings;
		*capacity = more;
	}
	mapping = &target->mappings[target->nr_mappings];
	*mapping = (struct mapping){
	    .start = start,
	    .end = end,
	    .offset = offset,
	    .device = makedev(major, minor),
	    .inode = inode,
	    .path = strdup(line + name),
	};
	if (!mapping->path)
		return false;
	target->nr_mappings++;
	return true;
}

static void drop_mappings(struct target *target)
{
	for (size_t i = 0; i < target->nr_mappings; i++)
		free(target->mappings[i].path);
	free(target->mappings);
	target->mappings = NULL;
	target->nr_mappings = 0;
}

/* Reads all of them, or none: then it returns false with errno, ENOMEM if out of memory. */
static bool read_mappings(struct target *target)
{
	char path[64], *line = NULL;
	size_t size = 0, capacity = 0;
	bool enough = true;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", target->pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (enough && getline(&line, &size, file) > 0)
		enough = add_mapping(target, &capacity, line);
	free(line);
	fclose(file);
	if (enough)
		return true;
	drop_mappings(target);
	errno = ENOMEM;
	return false;
}

void live_update_mappings(struct target *target)
{
	struct target now = {.pid = target->pid};

	if (!read_mappings(&now))
		return;
	drop_mappings(target);
	target->mappings = now.mappings;
	target->nr_mappings = now.nr_mappings;
}

/* What /proc/PID/exe points to, malloc'ed; "" if it runs no program (any more), or that must not be known. */
static char *read_executable(pid_t pid)
{
	char link[64], path[4096];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	length = readlink(link, path, sizeof(path) - 1);
	return strndup(path, length > 0 ? (size_t)length : 0);
}

/* Reads the first byte of what is mapped by process_vm_readv(2). False with errno, ESRCH if the memory is gone. */
static bool read_first_byte(const struct target *target)
{
	uint8_t byte;
	struct iovec local = {.iov_base = &byte, .iov_len = 1};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)target->mappings[0].start, .iov_len = 1};

	return process_vm_readv(target->pid, &local, 1, &remote, 1, 0) == 1;
}

/*
 * /proc/PID/mem has the mode 0600 and belongs to the target's user (proc_pid_make_inode(), fs/proc/base.c): to open
 * that of another user takes CAP_DAC_OVERRIDE, where process_vm_readv(2) takes CAP_SYS_PTRACE only. It is needed for
 * pages that are mapped PROT_NONE only, and done without where it is refused.
 */
struct error *live_check_calls(const struct target *target)
{
	/* A page that may not be read (EFAULT) has passed the check of who may read. */
	if (target->nr_mappings == 0 || read_first_byte(target) || errno == EFAULT)
		return NULL;
	return diagnose_refusal("/proc", target->pid, errno);
}

struct error *live_open(pid_t pid, struct target **ret)
{
	struct target *target = calloc(1, sizeof(*target));
	struct error *error = NULL;
	char path[64];

	if (!target)
		return error_no_memory();
	target->kind = TARGET_LIVE;
	target->pid = pid;
	target->executable = read_executable(pid);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	target->memory_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!read_mappings(target))
		error = errno == ENOMEM ? error_no_memory() : diagnose_refusal("/proc", pid, errno);
	else if (target->memory_fd < 0)
		error = live_check_calls(target);
	if (error)
		target_close(target);
	else
		*ret = target;
	return error;
}

void live_close(struct target *target)
{
	live_resume(target);
	drop_mappings(target);
	free(target->threads);
	if (target->memory_fd >= 0)
		close(target->memory_fd);
}

static int ascending(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

pid_t *live_list_threads(pid_t pid, size_t *count)
{
	char path[64];
	size_t capacity = 0;
	pid_t *tids = NULL;
	struct dirent *entry;
	DIR *dir;

	*count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return NULL;
	while ((entry = readdir(dir))) {
		char *end;
		long tid = strtol(entry->d_name, &end, 10);

		if (*end != '\0' || tid <= 0)
			continue;
		if (*count == capacity) {
			size_t more = capacity ? capacity * 2 : 64;
			pid_t *grown = reallocarray(tids, more, sizeof(*tids));

			if (!grown)
				break;
			tids = grown;
			capacity = more;
		}
		tids[(*count)++] = (pid_t)tid;
	}
	closedir(dir);
	if (tids)
		qsort(tids, *count, sizeof(*tids), ascending);
	return tids;
}

pid_t live_inner_id(pid_t pid, pid_t tid)
{
	char path[64], line[512];
	pid_t inner = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	/* The name in its first line is escaped, and cannot look like another line. */
	while (file && inner == 0 && fgets(line, sizeof(line), file)) {
		const char *last = strrchr(line, '\t');

		if (strncmp(line, "NSpid:", 6) == 0 && last)
			inner = (pid_t)strtol(last + 1, NULL, 10);
	}
	if (file)
		fclose(file);
	return inner;
}

static struct native_thread *add_thread(struct target *target, pid_t tid)
{
	if (target->nr_threads == target->threads_capacity) {
		size_t more = target->threads_capacity ? target->threads_capacity * 2 : 64;
		struct native_thread *threads = reallocarray(target->threads, more, sizeof(*threads));

		if (!threads)
			return NULL;
		target->threads = threads;
		target->threads_capacity = more;
	}
	target->threads[target->nr_threads] = (struct native_thread){.tid = tid};
	return &target->threads[target->nr_threads++];
}

static void take_registers(struct native_thread *thread)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &registers) != 0)
		return;
	thread->ip = registers.rip;
	thread->fs_base = registers.fs_base;
}

/*
 * That of /proc/TID is for its whole process, of which the kernel then adds up the times of all threads: of thousands
 * of threads, each would take as long as all of them.
 */
static bool read_thread_stat(pid_t pid, pid_t tid, struct process_stat *ret)
{
	char tasks[64];

	snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	return process_stat_read(tasks, tid, ret);
}

/* Whether a thread is in the state D. */
static bool is_uninterruptible(pid_t pid, pid_t tid)
{
	struct process_stat stat;

	return read_thread_stat(pid, tid, &stat) && stat.state == 'D';
}

/* Whether a thread has ended, or is about to. */
static bool has_ended(pid_t pid, pid_t tid)
{
	struct process_stat stat;

	return !read_thread_stat(pid, tid, &stat) || stat.ended || stat.ending;
}

bool live_is_gone(const struct target *target)
{
	struct target now = {.pid = target->pid};
	bool gone = true;
	uint8_t byte;

	if (target->nr_mappings == 0)
		return false;
	if (target->memory_fd >= 0)
		return pread(target->memory_fd, &byte, 1, (off_t)target->mappings[0].start) == 0;
	if (read_first_byte(target))
		return false;
	/* After exec(2), another program's mappings are there; else that page is only not to be read. */
	if (errno == EFAULT && read_mappings(&now)) {
		gone = now.nr_mappings == 0 || now.mappings[0].start != target->mappings[0].start;
		drop_mappings(&now);
	}
	return gone;
}

/* Reads a page without /proc/PID/mem. */
static bool read_page_by_call(const struct target *target, uint64_t page, uint8_t *buffer)
{
	struct iovec local = {.iov_base = buffer, .iov_len = MEMORY_PAGE};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)page, .iov_len = MEMORY_PAGE};

	return process_vm_readv(target->pid, &local, 1, &remote, 1, 0) == MEMORY_PAGE;
}

bool live_is_ending(const struct target *target)
{
	struct process_stat stat;

	return !process_stat_read("/proc", target->pid, &stat) || stat.ending;
}

/*
 * Waits until a seized and interrupted thread has stopped, or ended, or time is up. Returns whether it has vanished: it
 * has ended, or has become the process's first thread by exec.
 */
static bool wait_for_stop(pid_t pid, struct native_thread *thread, const struct timespec *began)
{
	for (;;) {
		int status;
		enum stop_news news = stop_look(thread->tid, &thread->pending_signal, &status);
		long waited;

		thread->stopped = news == STOP_STOPPED;
		if (thread->stopped)
			take_registers(thread);
		if (news != STOP_NONE)
			return news == STOP_GONE;
		waited = elapsed_ns(began);
		if (waited > STOP_TIMEOUT_NS || (waited > STOP_PATIENCE_NS && is_uninterruptible(pid, thread->tid)))
			return false;
		/* Asleep: a waiter that spins or yields is scheduled late on a busy machine, with the target stopped.
		 */
		stop_sleep(LOOK_NS);
	}
}

static int by_tid(const void *a, const void *b)
{
	const struct native_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

struct error *live_stop(struct target *target)
{
	struct timespec began;
	int errnum = ESRCH;

	target->nr_threads = 0;
	target->stopped = true;
	hold_begin(target->pid);
	clock_gettime(CLOCK_MONOTONIC, &began);
	/* A running thread can start another one until it is stopped itself: go on until a round finds no new thread.
	 */
	for (int round = 0; round < STOP_ROUNDS; round++) {
		size_t count, first_new = target->nr_threads, at = 0;
		pid_t *tids = live_list_threads(target->pid, &count);
		bool vanished = false;

		for (size_t i = 0; i < count; i++) {
			struct native_thread *thread;

			/* Both are by number: there may be thousands, and they stand still meanwhile. */
			while (at < first_new && target->threads[at].tid < tids[i])
				at++;
			if (at < first_new && target->threads[at].tid == tids[i])
				continue;
			if (ptrace(PTRACE_SEIZE, tids[i], NULL, NULL) == 0) {
				if (add_thread(target, tids[i]))
					ptrace(PTRACE_INTERRUPT, tids[i], NULL, NULL);
				continue;
			}
			errnum = errno;
			/* A thread that has just ended is refused like one that must not be traced. */
			if (errnum == ESRCH || has_ended(target->pid, tids[i]))
				continue;
			if (tids[i] == target->pid) {
				struct error *error = diagnose_refusal("/proc", target->pid, errnum);

				free(tids);
				live_resume(target);
				return error;
			}
			thread = add_thread(target, tids[i]);
			if (thread)
				thread->refused = true;
		}
		free(tids);
		if (target->nr_threads == first_new)
			break;
		for (size_t i = first_new; i < target->nr_threads; i++)
			if (!target->threads[i].refused)
				vanished |= wait_for_stop(target->pid, &target->threads[i], &began);
		/* One of them may have called exec: it is the first thread now, whose stop was another's. */
		for (size_t i = 0; vanished && i < target->nr_threads; i++)
			if (target->threads[i].tid == target->pid && !target->threads[i].refused)
				wait_for_stop(target->pid, &target->threads[i], &began);
		qsort(target->threads, target->nr_threads, sizeof(*target->threads), by_tid);
	}
	for (size_t i = 0; i < target->nr_threads; i++)
		if (!target->threads[i].refused)
			return NULL;
	target->stopped = false;
	hold_end();
	return diagnose_refusal("/proc", target->nr_threads > 0 ? target->threads[0].tid : target->pid, errnum);
}

void live_resume(struct target *target)
{
	if (!target->stopped)
		return;
	for (size_t i = 0; i < target->nr_threads; i++) {
		const struct native_thread *thread = &target->threads[i];

		if (thread->stopped)
			ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(long)thread->pending_signal);
	}
	hold_end();
	target->stopped = false;
}

/* Reads one page through /proc/PID/mem, which also reads what is mapped PROT_NONE. */
static bool read_page(const struct target *target, uint64_t page, uint8_t *buffer)
{
	size_t done = 0;

	if (target->memory_fd < 0)
		return read_page_by_call(target, page, buffer);
	while (done < MEMORY_PAGE) {
		ssize_t n = pread(target->memory_fd, buffer + done, MEMORY_PAGE - done, (off_t)(page + done));

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

void live_read_pages(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	struct iovec remote[MAX_PIECES];
	size_t done = 0;

	while (done < count) {
		struct iovec local = {.iov_base = buffer + done * MEMORY_PAGE};
		size_t pieces = 0, end = done, whole;
		ssize_t n;

		while (end < count) {
			if (pieces > 0 && pages[end] == pages[end - 1] + MEMORY_PAGE) {
				remote[pieces - 1].iov_len += MEMORY_PAGE;
			} else if (pieces < MAX_PIECES) {
				remote[pieces].iov_base = (void *)(uintptr_t)pages[end];
				remote[pieces++].iov_len = MEMORY_PAGE;
			} else {
				break;
			}
			end++;
		}
		local.iov_len = (end - done) * MEMORY_PAGE;
		n = process_vm_readv(target->pid, &local, 1, remote, pieces, 0);
		whole = n > 0 ? (size_t)n / MEMORY_PAGE : 0;
		for (size_t i = 0; i < whole; i++)
			ok[done + i] = true;
		done += whole;
		/* What stopped it short is the page that it stopped at. */
		if (done < end) {
			ok[done] = read_page(target, pages[done], buffer + done * MEMORY_PAGE);
			done++;
		}
	}
}

/*
 * Whether an open file is the one that is mapped. Overlays and btrfs show other numbers in maps than in stat(2): there,
 * the mapped bytes decide. The first page of a program has its headers, and most often its build-id.
 */
static bool is_mapped(const struct target *target, const struct mapping *mapping, int fd)
{
	uint8_t mapped[MEMORY_PAGE], page[MEMORY_PAGE];
	struct stat status;
	ssize_t length;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		return false;
	if (status.st_dev == mapping->device && status.st_ino == mapping->inode)
		return true;
	length = pread(fd, page, sizeof(page), (off_t)mapping->offset);
	return length > 0 && read_page(target, mapping->start, mapped) && memcmp(mapped, page, (size_t)length) == 0;
}

/* Opens what may be the file that is mapped. Returns -1 with ESTALE if it is another one. */
static int open_if_mapped(const struct target *target, const struct mapping *mapping, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || is_mapped(target, mapping, fd))
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

/*
 * The path of a mapping as the target itself would write it: a kernel tells paths from our own root, if they can be
 * reached from it; that of a process that chroot(2) has put into a folder begins with that folder.
 */
static const char *path_inside(const struct target *target, const struct mapping *mapping)
{
	char link[64], root[4096];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/root", target->pid);
	length = readlink(link, root, sizeof(root));
	if (length > 1 && strncmp(mapping->path, root, (size_t)length) == 0 && mapping->path[length] == '/')
		return mapping->path + length;
	return mapping->path;
}

int live_open_file(const struct target *target, const struct mapping *mapping)
{
	char path[4096];
	int fd;

	/* Needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE: */
	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", target->pid, (unsigned long)mapping->start,
		 (unsigned long)mapping->end);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		return fd;
	if (mapping->path[0] != '/') {
		errno = ENOENT;
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/%d/exe", target->pid);
	if (!target->executable || strcmp(target->executable, mapping->path) != 0)
		snprintf(path, sizeof(path), "/proc/%d/root%s", target->pid, path_inside(target, mapping));
	fd = open_if_mapped(target, mapping, path);
	if (fd < 0 && errno == ENOENT && mapping->path[mapping_name_length(mapping)] != '\0')
		errno = ESTALE;
	return fd;
}
