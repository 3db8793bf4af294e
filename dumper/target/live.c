#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/array.h"
#include "memory/memory.h"
#include "target/diagnose.h"
#include "target/live.h"
#include "target/process_stat.h"
#include "target/stopping.h"

/* The most remote pieces for one process_vm_readv (IOV_MAX). */
#define MAX_PIECES 1024

/* Adds what one line of /proc/PID/maps tells. False if there is not enough memory. */
static bool add_mapping(struct target *target, size_t *capacity, char *line)
{
	unsigned long start, end, offset, inode;
	unsigned int major, minor;
	char allowed[5] = "";
	int name = 0;
	struct mapping *mapping;

	sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &start, &end, allowed, &offset, &major, &minor, &inode, &name);
	if (name == 0)
		return true;
	line[strcspn(line, "\n")] = '\0';
	if (!array_make_room(target->mappings, *capacity, target->nr_mappings + 1))
		return false;
	mapping = &target->mappings[target->nr_mappings];
	*mapping = (struct mapping){
	    .start = start,
	    .end = end,
	    .offset = offset,
	    .device = makedev(major, minor),
	    .inode = inode,
	    .path = strdup(line + name),
	    .executable = strchr(allowed, 'x') != NULL,
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

/* Reads all mappings. On failure, there are none, and it returns false with errno: ENOMEM if there is not enough memory. */
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

/*
 * Reads the mappings again: the process may have got more memory since. If they cannot be read, keeps the old ones.
 */
static void update_mappings(struct target *target)
{
	struct target now = {.pid = target->pid};

	if (!read_mappings(&now))
		return;
	drop_mappings(target);
	target->mappings = now.mappings;
	target->nr_mappings = now.nr_mappings;
}

/*
 * What /proc/PID/exe points to, malloc'ed; "" if it runs no program (any more), or if the link must not be read. NULL
 * if there is not enough memory.
 */
static char *read_executable(pid_t pid)
{
	char link[64], path[4096];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	length = readlink(link, path, sizeof(path) - 1);
	return strndup(path, length > 0 ? (size_t)length : 0);
}

/* Reads the first mapped byte with process_vm_readv(2). False with errno: ESRCH if the memory is gone. */
static bool read_first_byte(const struct target *target)
{
	uint8_t byte;
	struct iovec local = {.iov_base = &byte, .iov_len = 1};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)target->mappings[0].start, .iov_len = 1};

	return process_vm_readv(target->pid, &local, 1, &remote, 1, 0) == 1;
}

/*
 * /proc/PID/mem has the mode 0600 and belongs to the target's user (proc_pid_make_inode(), fs/proc/base.c). To open the
 * file of another user takes CAP_DAC_OVERRIDE, but process_vm_readv(2) takes only CAP_SYS_PTRACE. The file is needed
 * only for pages that are mapped PROT_NONE, so rbdump works without the file if the kernel refuses to open it.
 */
struct error *live_check_calls(const struct target *target)
{
	/* EFAULT: the page is not readable, but the check of permissions has passed. */
	if (target->nr_mappings == 0 || read_first_byte(target) || errno == EFAULT)
		return NULL;
	return diagnose_refusal("/proc", target->pid, errno);
}

static void close_process(struct target *target)
{
	live_resume(target);
	drop_mappings(target);
	free(target->threads);
	addresses_clear(&target->restless);
	address_map_clear(&target->uninterruptible);
	if (target->memory_fd >= 0)
		close(target->memory_fd);
	else if (target->maps_fd >= 0)
		close(target->maps_fd);
}

bool live_is_gone(const struct target *target)
{
	uint8_t byte;

	if (target->nr_mappings == 0)
		return false;
	if (target->memory_fd >= 0)
		return pread(target->memory_fd, &byte, 1, (off_t)target->mappings[0].start) == 0;
	/*
	 * The addresses tell nothing: another program can have the same ones. An open maps file stays that of the memory at
	 * the time when it was opened, and anybody may open it who may read the memory (fs/proc/task_mmu.c since v3.18,
	 * proc_maps_open(), m_start()): it has no lines once that memory is gone, and an error once the process is.
	 */
	return pread(target->maps_fd, &byte, 1, 0) <= 0;
}

/* Reads a page without /proc/PID/mem. */
static bool read_page_by_call(const struct target *target, uint64_t page, uint8_t *buffer)
{
	struct iovec local = {.iov_base = buffer, .iov_len = MEMORY_PAGE};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)page, .iov_len = MEMORY_PAGE};

	return process_vm_readv(target->pid, &local, 1, &remote, 1, 0) == MEMORY_PAGE;
}

static bool is_ending(const struct target *target)
{
	struct process_stat stat;

	return !process_stat_read("/proc", target->pid, &stat) || stat.ending;
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

/*
 * Uses as few calls as possible, each with as many pages as process_vm_readv(2) takes. A page that this call cannot
 * read (PROT_NONE: Ruby protects pages while it compacts its heap) is read through /proc/PID/mem.
 */
static void read_pages(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
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
		/* A short read: the page behind it is the one that could not be read. */
		if (done < end) {
			ok[done] = read_page(target, pages[done], buffer + done * MEMORY_PAGE);
			done++;
		}
	}
}

/*
 * Whether an open file is the one that is mapped. On overlayfs and btrfs, device and inode in maps differ from those
 * of stat(2): there, the mapped bytes decide. The first page of a program has its headers, and mostly its build-id.
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

/* Opens a file if it is the one that is mapped. Returns -1 with errno: ESTALE if it is another one. */
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
 * The path of a mapping, relative to the target's own root. The kernel gives paths relative to rbdump's root if they
 * can be reached from it: in a process after chroot(2), they begin with the folder of its root.
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

/*
 * Opens it through map_files if that is allowed; else through /proc/PID/exe if it is the executable; else by its path
 * below the target's own root, because the target may be in a container.
 */
static int open_file(const struct target *target, const struct mapping *mapping)
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

static bool may_have(const struct target *target, uint64_t address)
{
	const size_t at = array_first(target->mappings, target->nr_mappings, mapping, mapping->end > address);

	return at < target->nr_mappings && target->mappings[at].start <= address;
}

static uint64_t mapped_bytes(const struct target *target)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < target->nr_mappings; i++)
		bytes += target->mappings[i].end - target->mappings[i].start;
	return bytes;
}

const struct target_operations live_operations = {
    .name = "process",
    .is = "is",
    .again = "; try again",
    .runs = true,
    .close = close_process,
    .read_pages = read_pages,
    .open_file = open_file,
    .may_have = may_have,
    .mapped_bytes = mapped_bytes,
    .update_mappings = update_mappings,
    .is_ending = is_ending,
};

struct error *live_open(pid_t pid, struct target **ret)
{
	struct target *target = calloc(1, sizeof(*target));
	struct error *error = NULL;
	char path[64];

	if (!target)
		return error_no_memory();
	target->operations = &live_operations;
	target->pid = pid;
	target->executable = read_executable(pid);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	target->memory_fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	target->maps_fd = target->memory_fd < 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (target->memory_fd < 0 && target->maps_fd < 0)
		error = diagnose_refusal("/proc", pid, errno);
	else if (!target->executable)
		error = error_no_memory();
	else if (!read_mappings(target))
		error = errno == ENOMEM ? error_no_memory() : diagnose_refusal("/proc", pid, errno);
	else if (target->memory_fd < 0)
		error = live_check_calls(target);
	if (error)
		target_close(target);
	else
		*ret = target;
	return error;
}

/* Whether two paths lead to the same file. */
static bool is_same_file(const char *one, const char *other)
{
	struct stat a, b;

	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool live_shares_files(pid_t pid)
{
	char root[64], mounts[64];

	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	snprintf(mounts, sizeof(mounts), "/proc/%d/ns/mnt", pid);
	return is_same_file(root, "/") && is_same_file(mounts, "/proc/self/ns/mnt");
}
