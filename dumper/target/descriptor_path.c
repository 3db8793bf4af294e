#include "target/descriptor_path.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char mark[] = " (deleted)";

/*
 * The path inside of the target's root directory. If that can be reached from rbdump's own, the kernel gives paths from
 * rbdump's.
 */
static const char *inside(pid_t pid, const char *path)
{
	char link[64], root[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/root", pid);
	length = readlink(link, root, sizeof(root));
	if (length > 1 && (size_t)length < sizeof(root) && strncmp(path, root, (size_t)length) == 0 &&
	    path[length] == '/')
		return path + length;
	return path;
}

/*
 * Finds a path in the target's root directory. A target can put a link, or a file system that never answers, in the way: so
 * links stay in that root, and only what the kernel has cached is looked at. The path of an open file is always cached.
 */
static int find(pid_t pid, const char *path)
{
	const struct open_how how = {
	    .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED,
	};
	char root[64];
	int folder, fd;

	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
	close(folder);
	return fd;
}

/* Whether a path in the target's root directory leads to the file. Its last part is not followed. */
static bool leads_to(pid_t pid, const char *path, const struct statx *status)
{
	const int fd = find(pid, path);
	struct statx found;
	bool same;

	if (fd < 0)
		return false;
	same = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &found) == 0 &&
	       found.stx_ino == status->stx_ino && found.stx_dev_major == status->stx_dev_major &&
	       found.stx_dev_minor == status->stx_dev_minor;
	close(fd);
	return same;
}

void descriptor_path_add(pid_t pid, const char *link, const struct statx *status, struct facts *facts)
{
	const char *path = inside(pid, link);
	size_t length = strlen(path);
	const bool marked = length >= sizeof(mark) && strcmp(path + length - (sizeof(mark) - 1), mark) == 0;
	const bool deleted = marked && (status->stx_nlink == 0 || !leads_to(pid, path, status));

	if (deleted)
		length -= sizeof(mark) - 1;
	facts_add_bytes(facts, "path", path, length);
	if (deleted)
		facts_add_flag(facts, "deleted", true);
}
