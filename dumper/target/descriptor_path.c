#include "target/descriptor_path.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

/* Whether a path in the target's root directory leads to the file. It is not opened, and its last part is not followed. */
static bool leads_to(pid_t pid, const char *path, const struct statx *status)
{
	char full[PATH_MAX + 64];
	struct statx found;

	snprintf(full, sizeof(full), "/proc/%d/root%s", pid, path);
	return statx(AT_FDCWD, full, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, STATX_BASIC_STATS,
		     &found) == 0 &&
	       found.stx_ino == status->stx_ino && found.stx_dev_major == status->stx_dev_major &&
	       found.stx_dev_minor == status->stx_dev_minor;
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
