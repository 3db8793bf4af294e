#include "target/process_stat.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* include/linux/sched.h */
#define PF_EXITING 0x00000004u
#define PF_KTHREAD 0x00200000u

/* `PID (NAME) STATE PARENT …`: the name may have brackets, blanks and newlines of its own. */
static char *end_of_name(char *content)
{
	return strrchr(content, ')');
}

bool process_stat_read(const char *proc, pid_t id, struct process_stat *ret)
{
	char path[4096], content[1024], *name, *end;
	unsigned int flags;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "%s/%d/stat", proc, id);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd >= 0 ? read(fd, content, sizeof(content) - 1) : -1;
	if (fd >= 0)
		close(fd);
	content[length > 0 ? length : 0] = '\0';
	*ret = (struct process_stat){0};
	name = strchr(content, '(');
	end = end_of_name(content);
	if (!name || !end || end < name ||
	    sscanf(end, ") %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
		   &ret->state, &ret->parent, &flags, &ret->started) != 4)
		return false;
	*end = '\0';
	snprintf(ret->name, sizeof(ret->name), "%s", name + 1);
	ret->ending = flags & PF_EXITING;
	ret->kernel = flags & PF_KTHREAD;
	ret->ended = ret->state == 'Z' || ret->state == 'X';
	return true;
}

/* The number after a keyword in the status file of a process or a thread; 0 if there is none. */
static pid_t read_status(const char *proc, pid_t id, const char *word)
{
	char path[4096], line[256];
	pid_t value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d/status", proc, id);
	file = fopen(path, "re");
	/* The name in its first line is escaped, and cannot look like another line (proc(5)). */
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, word, strlen(word)) == 0) {
			value = atoi(line + strlen(word));
			break;
		}
	if (file)
		fclose(file);
	return value;
}

pid_t process_stat_process(const char *proc, pid_t id)
{
	return read_status(proc, id, "Tgid:");
}

pid_t process_stat_tracer(const char *proc, pid_t id)
{
	return read_status(proc, id, "TracerPid:");
}

/* Reads an open stat file. Returns what follows the name; NULL if it cannot be read. */
static char *read_after_name(int fd, char *content, size_t size)
{
	ssize_t length = fd < 0 ? -1 : pread(fd, content, size - 1, 0);

	if (length <= 0)
		return NULL;
	content[length] = '\0';
	return end_of_name(content);
}

char process_stat_state(int fd)
{
	char content[1024], state = 0, *at = read_after_name(fd, content, sizeof(content));

	return at && sscanf(at, ") %c", &state) == 1 ? state : 0;
}

int process_stat_cpu(int fd)
{
	char content[1024], *at = read_after_name(fd, content, sizeof(content));

	/* The name is field 2. */
	for (int field = 2; at && field < 39; field++)
		at = strchr(at + 1, ' ');
	return at ? atoi(at + 1) : -1;
}
