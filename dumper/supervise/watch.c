#include "supervise/watch.h"

#include <stdio.h>
#include <sys/wait.h>

#include "target/process_stat.h"
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

void watch_note_end(struct watch *watch, int status)
{
	watch->reaped = true;
	watch->has_status = watch->child;
	watch->status = status;
}

bool watch_has_ended(struct watch *watch)
{
	siginfo_t ended = {0};
	struct process_stat stat;

	if (watch->reaped)
		return true;
	if (!watch->child)
		return !process_stat_read("/proc", watch->pid, &stat) || stat.ended;
	if (waitid(P_PID, (id_t)watch->pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) {
		/* Somebody else was told. */
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
