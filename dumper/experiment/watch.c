#include "experiment/watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "vm/access.h"

static bool executable_of(pid_t pid, struct stat *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, ret) == 0;
}

void watch_begin(struct watch *watch, pid_t pid, bool child)
{
	*watch = (struct watch){.pid = pid, .child = child};
	executable_of(pid, &watch->executable);
}

/* Of a process that is no child of ours: proc(5), stat; its name is in parentheses, and may have some itself. */
static bool is_dead(pid_t pid)
{
	char path[64], content[512] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return true;
	state = fgets(content, sizeof(content), file) ? strrchr(content, ')') : NULL;
	fclose(file);
	return !state || strncmp(state, ") Z", 3) == 0 || strncmp(state, ") X", 3) == 0;
}

bool watch_has_ended(struct watch *watch)
{
	siginfo_t ended = {0};

	if (watch->reaped)
		return true;
	if (!watch->child)
		return is_dead(watch->pid);
	if (waitid(P_PID, (id_t)watch->pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) {
		/* It ended while it was traced, and the tracer was told. */
		watch->reaped = true;
		return true;
	}
	if (ended.si_pid != watch->pid)
		return false;
	watch->reaped = watch->has_status = waitpid(watch->pid, &watch->status, 0) == watch->pid;
	return true;
}

bool watch_has_execed(const struct watch *watch, const struct ruby *ruby)
{
	struct access access = ruby_access(ruby);
	struct stat now;

	if (executable_of(watch->pid, &now) &&
	    (now.st_dev != watch->executable.st_dev || now.st_ino != watch->executable.st_ino))
		return true;
	access_word(&access, ruby->vm);
	return access.failed;
}
