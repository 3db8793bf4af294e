#include "target/process_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* include/linux/sched.h */
#define PF_EXITING 0x00000004u

bool process_stat_read(const char *proc, pid_t id, struct process_stat *ret)
{
	char path[4096], content[512];
	const char *rest;
	unsigned int flags;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "%s/%d/stat", proc, id);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd >= 0 ? read(fd, content, sizeof(content) - 1) : -1;
	if (fd >= 0)
		close(fd);
	content[length > 0 ? length : 0] = '\0';
	/* The name is in parentheses, and may have some itself. */
	rest = strrchr(content, ')');
	if (!rest || sscanf(rest, ") %c %*d %*d %*d %*d %*d %u", &ret->state, &flags) != 2)
		return false;
	ret->ending = flags & PF_EXITING;
	return true;
}
