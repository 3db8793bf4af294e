#include "experiment/progress.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

struct progress {
	int fd; /* the target's own count; -1: CPU time */
	clockid_t clock;
	bool has_clock;
};

struct error *progress_open(pid_t pid, const char *path, struct progress **ret)
{
	struct progress *progress = calloc(1, sizeof(*progress));
	struct stat status;

	if (!progress)
		return error_no_memory();
	/* O_NONBLOCK: opening a FIFO must not block. */
	progress->fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (path && (progress->fd < 0 || fstat(progress->fd, &status) != 0 || !S_ISREG(status.st_mode))) {
		struct error *error =
		    error_create(EXIT_FAILED, "the progress file %s cannot be read: %s", path,
				 progress->fd < 0 ? strerror(errno) : "the file is not a regular file");

		progress_close(progress);
		return error;
	}
	progress->has_clock = clock_getcpuclockid(pid, &progress->clock) == 0;
	*ret = progress;
	return NULL;
}

void progress_close(struct progress *progress)
{
	if (!progress)
		return;
	if (progress->fd >= 0)
		close(progress->fd);
	free(progress);
}

double progress_now(const struct progress *progress)
{
	struct timespec time;
	uint64_t count;

	if (progress->fd >= 0)
		return pread(progress->fd, &count, sizeof(count), 0) == sizeof(count) ? (double)le64toh(count) : 0;
	if (!progress->has_clock || clock_gettime(progress->clock, &time) != 0)
		return 0;
	return (double)ns_of(&time) / 1e9;
}

const char *progress_unit(const struct progress *progress)
{
	return progress->fd >= 0 ? "count" : "cpu_time";
}
