#include "target/task.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/process_stat.h"

/* More than any clock has as its number (include/uapi/linux/time.h), and less than any address that is mapped. */
#define CLOCKS 16

static int open_file(pid_t pid, pid_t tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void task_open(struct task *task, pid_t pid, pid_t tid)
{
	task->stat_fd = open_file(pid, tid, "stat");
	task->schedstat_fd = open_file(pid, tid, "schedstat");
	task->syscall_fd = open_file(pid, tid, "syscall");
	task->pid = pid;
	task->tid = tid;
}

static void close_files(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

void task_keep_switches(struct task *task)
{
	const int schedstat_fd = task->schedstat_fd, others[] = {task->stat_fd, task->syscall_fd};

	close_files(others, sizeof(others) / sizeof(others[0]));
	*task = TASK_CLOSED;
	task->schedstat_fd = schedstat_fd;
}

void task_close(struct task *task)
{
	const int fds[] = {task->stat_fd, task->schedstat_fd, task->syscall_fd};

	close_files(fds, sizeof(fds) / sizeof(fds[0]));
	*task = TASK_CLOSED;
}

/* Reads the text of a file from its beginning. False, and "", if it cannot be read. */
static bool read_text(int fd, char *text, size_t size)
{
	ssize_t length = fd < 0 ? -1 : pread(fd, text, size - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

bool task_has_ended(const struct task *task)
{
	/* Both tell it. The kernel makes schedstat faster, but not every kernel has it. */
	int fd = task->schedstat_fd >= 0 ? task->schedstat_fd : task->stat_fd;
	char text[128];

	return fd >= 0 && !read_text(fd, text, sizeof(text));
}

int task_cpu(const struct task *task)
{
	return process_stat_cpu(task->stat_fd);
}

int task_follow(const struct task *task, const cpu_set_t *cpus, int bound)
{
	const int cpu = task_cpu(task);
	cpu_set_t set;

	if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, cpus))
		return -1;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return cpu == bound || sched_setaffinity(0, sizeof(set), &set) == 0 ? cpu : -1;
}

/*
 * schedstat: time on a CPU, time of waiting for one, how often it got one (Documentation/scheduler/sched-stats.rst).
 */
uint64_t task_switches(const struct task *task)
{
	const char *at;
	char text[128];

	/* sscanf() takes longer than the kernel. */
	if (!read_text(task->schedstat_fd, text, sizeof(text)))
		return 0;
	at = strchr(text, ' ');
	at = at ? strchr(at + 1, ' ') : NULL;
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

bool task_cpu_ns(const struct task *task, uint64_t *ret)
{
	char text[128];

	*ret = 0;
	if (!read_text(task->schedstat_fd, text, sizeof(text)))
		return false;
	*ret = strtoull(text, NULL, 10);
	return true;
}

bool task_place(const struct task *task, uint64_t *ip, uint64_t *sp)
{
	unsigned long long stack, instruction;
	char text[256];

	/* The number of the system call, six arguments unless it is -1, and both pointers (fs/proc/base.c, v5.15 to v6.18). */
	if (!read_text(task->syscall_fd, text, sizeof(text)) ||
	    (sscanf(text, "-1 %llx %llx", &stack, &instruction) != 2 &&
	     sscanf(text, "%*d %*x %*x %*x %*x %*x %*x %llx %llx", &stack, &instruction) != 2))
		return false;
	*ip = instruction;
	*sp = stack;
	return true;
}

/* Whether it is asleep in a function of the kernel; false if the kernel does not tell. */
static bool waits_in(const char *channel, const char *function)
{
	return strncmp(channel, function, strlen(function)) == 0;
}

/* Reads the function of the kernel in which the thread is asleep; "" if the kernel does not tell. */
static void read_channel(const struct task *task, char *ret, size_t size)
{
	int fd = open_file(task->pid, task->tid, "wchan");

	read_text(fd, ret, size);
	close_files(&fd, 1);
}

/*
 * After a stop, the kernel goes on with some calls by restart_syscall(2). The arguments are still in the registers, but
 * the number is not; the kernel's function tells it. These are all calls with such a restart that sleep
 * (set_restart_fn() in fs/select.c, kernel/time/hrtimer.c, kernel/time/alarmtimer.c and kernel/futex, v5.15 to v6.18).
 * The first argument of clock_nanosleep(2) is the number of a clock; that of nanosleep(2) is an address.
 */
static int restarted_call(const struct task *task, const struct system_call *call)
{
	char channel[64] = "";

	read_channel(task, channel, sizeof(channel));
	if (waits_in(channel, "poll_schedule_timeout"))
		return SYS_poll;
	if (waits_in(channel, "futex_"))
		return SYS_futex;
	if (strstr(channel, "nanosleep") || strstr(channel, "nsleep"))
		return call->arguments[0] < CLOCKS ? SYS_clock_nanosleep : SYS_nanosleep;
	return call->number;
}

struct system_call task_call(const struct task *task)
{
	struct system_call call = {0};
	uint64_t *const of = call.arguments;
	char text[256];

	call.known = read_text(task->syscall_fd, text, sizeof(text)) &&
		     sscanf(text, "%d %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
			    &call.number, &of[0], &of[1], &of[2], &of[3], &of[4], &of[5], &call.sp) == 8 &&
		     call.number >= 0;
	if (call.known && call.number == SYS_restart_syscall)
		call.number = restarted_call(task, &call);
	return call.known ? call : (struct system_call){0};
}

/*
 * Finds out why a thread is asleep. States of proc(5): T is stopped by a signal, t by a tracer, D is an
 * uninterruptible sleep. If it is in an interruptible sleep, but in no system call, the function of the kernel tells:
 * it waits for a page that another process must supply (fs/userfaultfd.c), or its control group is frozen
 * (kernel/signal.c, do_freezer_trap()).
 */
static void read_state(const struct task *task, struct task_look *look)
{
	const char state = process_stat_state(task->stat_fd);
	char channel[64] = "";

	look->stopped = state == 'T' || state == 't';
	look->paging = state == 'D' && look->syscall == -1;
	look->interruptible = state == 'S';
	if (state == 'S' && look->syscall == -1) {
		read_channel(task, channel, sizeof(channel));
		look->paging = waits_in(channel, "handle_userfault");
		look->stopped = waits_in(channel, "do_freezer_trap");
	}
}

struct task_look task_look(const struct task *task, const struct task_look *since)
{
	struct task_look look = {.syscall = -1, .switches = task_switches(task)};
	char text[256];

	if (since && since->known && since->asleep && look.switches != 0 && since->switches == look.switches)
		return *since;
	/* "running"; or the system call's number, arguments and two registers; -1 if it is in none (proc(5)). */
	look.known = read_text(task->syscall_fd, text, sizeof(text));
	look.asleep = look.known && strncmp(text, "running", 7) != 0;
	if (look.asleep && sscanf(text, "%d", &look.syscall) != 1)
		look.syscall = -1;
	if (look.asleep)
		read_state(task, &look);
	return look;
}

bool task_runs(const struct task *task)
{
	char text[16];

	return read_text(task->syscall_fd, text, sizeof(text)) && strncmp(text, "running", 7) == 0;
}

bool task_sleeps_on(const struct task *task, const struct task_look *since)
{
	return since->known && since->asleep && since->switches != 0 && task_switches(task) == since->switches;
}
