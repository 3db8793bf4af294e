#include "guard/watch.h"

#include <sys/wait.h>

#include "target/process_stat.h"

void watch_begin(struct watch *watch, pid_t pid, bool child)
{
	*watch = (struct watch){.pid = pid, .child = child};
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
		/* Another process or thread has reaped it. */
		watch->reaped = true;
		return true;
	}
	if (ended.si_pid != watch->pid)
		return false;
	watch->reaped = watch->has_status = waitpid(watch->pid, &watch->status, 0) == watch->pid;
	return true;
}
