#include "dump/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/reopen.h"
#include "base/thread.h"

/* What the reading thread is to do, and its result. If the thread does not end in time, it keeps this struct. */
struct request {
	char *root, *path;
	struct source_file file;
};

static void destroy(struct request *request)
{
	if (!request)
		return;
	free(request->root);
	free(request->path);
	free(request->file.bytes);
	free(request);
}

/* The errors that are likely. */
static const char *reason_of(int number)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR:
		return "there is no such file";
	case EACCES:
	case EPERM:
		return "no permission to read the file";
	case ELOOP:
		return "the path has too many symbolic links";
	case ENOSYS:
		return "this kernel cannot open files in another root folder (it has no openat2)";
	default:
		return "the file cannot be read";
	}
}

/* Finds a file, and does not open it (reopen.h). */
static int find_within(const char *root, const char *path)
{
	const struct open_how how = {
	    .flags = O_PATH | O_CLOEXEC,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	const int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd, number;

	if (folder < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
	number = errno;
	close(folder);
	errno = number;
	return fd;
}

static void read_all(int fd, struct source_file *ret)
{
	ssize_t got = 1;
	char *bytes;

	ret->bytes = malloc(SOURCE_FILE_BYTES);
	while (ret->bytes && got > 0 && ret->length < SOURCE_FILE_BYTES) {
		got = read(fd, ret->bytes + ret->length, SOURCE_FILE_BYTES - ret->length);
		ret->length += got > 0 ? (size_t)got : 0;
	}
	ret->cut = ret->length == SOURCE_FILE_BYTES;
	if (ret->bytes && got >= 0) {
		bytes = realloc(ret->bytes, ret->length > 0 ? ret->length : 1);
		ret->bytes = bytes ? bytes : ret->bytes;
		return;
	}
	free(ret->bytes);
	ret->bytes = NULL;
	ret->why = "the file cannot be read";
}

/*
 * Whether a file is one that is stored somewhere. Files that the kernel makes up are not: what they say is of rbdump and not
 * of the target (/proc/self), and to read them can change something.
 */
static bool is_stored(int fd, struct stat *ret)
{
	struct statfs system;

	return fstat(fd, ret) == 0 && S_ISREG(ret->st_mode) && fstatfs(fd, &system) == 0 &&
	       system.f_type != PROC_SUPER_MAGIC && system.f_type != SYSFS_MAGIC && system.f_type != DEBUGFS_MAGIC &&
	       system.f_type != TRACEFS_MAGIC && system.f_type != CGROUP2_SUPER_MAGIC;
}

static void *read_file(void *context)
{
	struct request *request = context;
	struct source_file *file = &request->file;
	const int found = find_within(request->root, request->path);
	struct stat stat;
	int fd = -1;

	if (found < 0) {
		file->why = reason_of(errno);
		return NULL;
	}
	if (!is_stored(found, &stat)) {
		file->why = "it is not a regular file";
	} else {
		fd = reopen_to_read(found);
		file->why = fd < 0 ? reason_of(errno) : NULL;
		file->changed = stat.st_mtim;
	}
	close(found);
	if (fd >= 0) {
		read_all(fd, file);
		close(fd);
	}
	return NULL;
}

void source_file_read(const char *root, const char *path, const struct timespec *until, struct source_file *ret)
{
	struct request *request;
	struct error *error;
	pthread_t reader;

	/* A thread that waits for a file system that does not answer stays, so no more of them are started. */
	*ret = (struct source_file){.why = "there was no time left to read the file"};
	if (monotonic_ns() >= ns_of(until))
		return;
	ret->why = "there is not enough memory";
	request = calloc(1, sizeof(*request));
	if (request) {
		request->root = strdup(root);
		request->path = strdup(path);
	}
	if (!request || !request->root || !request->path) {
		destroy(request);
		return;
	}
	error = thread_start(&reader, read_file, request);
	if (error) {
		error_destroy(error);
		destroy(request);
		return;
	}
	if (pthread_clockjoin_np(reader, NULL, CLOCK_MONOTONIC, until) != 0) {
		pthread_detach(reader);
		ret->why = "the file system did not answer in time";
		return;
	}
	*ret = request->file;
	request->file.bytes = NULL;
	destroy(request);
}
