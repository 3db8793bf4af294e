#include "target/diagnose.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "target/process_stat.h"

/* linux/capability.h */
#define CAP_SYS_PTRACE_BIT 19

struct process_status {
	bool found;
	char state;
	pid_t tracer;
	uid_t real, effective, saved;
	uint64_t effective_capabilities;
	char name[32];
};

static struct process_status read_status(const char *proc, const char *pid)
{
	struct process_status status = {0};
	char path[4096], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/status", proc, pid);
	file = fopen(path, "re");
	if (!file)
		return status;
	status.found = true;
	while (fgets(line, sizeof(line), file)) {
		unsigned int real, effective, saved;
		unsigned long long capabilities;
		int tracer;

		if (sscanf(line, "Name: %31[^\n]", status.name) == 1)
			continue;
		if (sscanf(line, "State: %c", &status.state) == 1)
			continue;
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			status.tracer = tracer;
		else if (sscanf(line, "Uid: %u %u %u", &real, &effective, &saved) == 3) {
			status.real = real;
			status.effective = effective;
			status.saved = saved;
		} else if (sscanf(line, "CapEff: %llx", &capabilities) == 1)
			status.effective_capabilities = capabilities;
	}
	fclose(file);
	return status;
}

/* kernel.yama.ptrace_scope, -1 if this kernel has no Yama */
static int read_yama(const char *proc)
{
	char path[4096];
	FILE *file;
	int scope;

	snprintf(path, sizeof(path), "%s/sys/kernel/yama/ptrace_scope", proc);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &scope) != 1)
		scope = -1;
	fclose(file);
	return scope;
}

static const char *user_name(uid_t uid, char *buffer, size_t size)
{
	const struct passwd *entry = getpwuid(uid);

	if (entry)
		snprintf(buffer, size, "%s (uid %u)", entry->pw_name, (unsigned int)uid);
	else
		snprintf(buffer, size, "uid %u", (unsigned int)uid);
	return buffer;
}

/*
 * Whether a system call is refused whatever it is asked for: by a filter (seccomp) that rbdump runs under. Each is
 * tried on this process itself, where the kernel's own checks have nothing against it.
 */
static bool reading_is_filtered(void)
{
	char from = 0, to;
	struct iovec local = {&to, 1}, remote = {&from, 1};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 &&
	       (errno == EPERM || errno == ENOSYS || errno == EACCES);
}

/* We are not traced by ourselves: ESRCH (ptrace(2)). */
static bool tracing_is_filtered(void)
{
	return ptrace(PTRACE_PEEKUSER, getpid(), NULL, NULL) < 0 && errno != ESRCH && errno != EIO;
}

/* The error if a filter of system calls is the cause; NULL if it is not. */
static struct error *diagnose_filter(void)
{
	const bool reading = reading_is_filtered(), tracing = tracing_is_filtered();

	if (!reading && !tracing)
		return NULL;
	return error_create(
	    EXIT_NO_PERMISSION,
	    "a filter of system calls (seccomp) that rbdump runs under refuses %s%s%s; allow %s in the "
	    "container's seccomp profile (Docker's default one does so with --cap-add SYS_PTRACE), or run "
	    "rbdump outside of the container%s",
	    reading ? "process_vm_readv(2)" : "", reading && tracing ? " and " : "", tracing ? "ptrace(2)" : "",
	    reading && tracing ? "them" : "it", reading ? "" : "; or read without stopping the process: --no-stop");
}

/* Whether we are in a user namespace other than the first, which has all user ids (user_namespaces(7)). */
static bool in_user_namespace(const char *proc)
{
	unsigned int inside, outside, count;
	char path[4096];
	bool first;
	FILE *file;

	snprintf(path, sizeof(path), "%s/self/uid_map", proc);
	file = fopen(path, "re");
	if (!file)
		return false;
	first = fscanf(file, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
		count == UINT32_MAX;
	fclose(file);
	return !first;
}

/* The label that a security module has given us, if it confines us; "" if none does. */
static void read_label(const char *proc, char *ret, size_t size)
{
	char path[4096];
	FILE *file;

	ret[0] = '\0';
	snprintf(path, sizeof(path), "%s/self/attr/current", proc);
	file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(ret, (int)size, file))
		ret[0] = '\0';
	fclose(file);
	ret[strcspn(ret, "\n")] = '\0';
	for (char *at = ret; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	if (strstr(ret, "unconfined"))
		ret[0] = '\0';
}

/* We have CAP_SYS_PTRACE, and are refused all the same. */
static struct error *diagnose_capable(const char *proc, pid_t pid, int errnum)
{
	char label[128];

	if (in_user_namespace(proc))
		return error_create(
		    EXIT_NO_PERMISSION,
		    "the kernel refuses access to process %d (%s): rbdump runs in a user namespace, and "
		    "its capability CAP_SYS_PTRACE is for processes of that namespace only; run rbdump "
		    "from the host, or in the namespace of that process",
		    pid, strerror(errnum));
	read_label(proc, label, sizeof(label));
	if (label[0])
		return error_create(
		    EXIT_NO_PERMISSION,
		    "the kernel refuses access to process %d (%s), though rbdump has CAP_SYS_PTRACE; the "
		    "security module that confines rbdump (%s) may be the cause: see the kernel's log, or "
		    "run rbdump unconfined",
		    pid, strerror(errnum), label);
	return error_create(
	    EXIT_NO_PERMISSION,
	    "the kernel refuses access to process %d (%s), though rbdump has CAP_SYS_PTRACE, and it is not "
	    "known why; try from the host, as root",
	    pid, strerror(errnum));
}

struct error *diagnose_refusal(const char *proc, pid_t pid, int errnum)
{
	char number[16], theirs[96], ours[96];
	struct process_status target, self, tracer;
	struct process_stat stat;
	struct error *filtered;
	bool capable, same_user;
	int yama;

	snprintf(number, sizeof(number), "%d", pid);
	target = read_status(proc, number);
	if (!target.found)
		return error_create(EXIT_FAILED, "there is no process %d", pid);
	if (target.state == 'Z' || target.state == 'X')
		return error_create(EXIT_FAILED, "process %d (%s) has ended and waits for its parent to notice", pid,
				    target.name);
	if (errnum == ESRCH)
		return error_create(EXIT_FAILED, "there is no process %d", pid);
	if (process_stat_read(proc, pid, &stat) && stat.ending)
		return error_create(EXIT_FAILED, "process %d (%s) is ending", pid, target.name);
	if (target.tracer != 0) {
		snprintf(number, sizeof(number), "%d", target.tracer);
		tracer = read_status(proc, number);
		return error_create(
		    EXIT_NO_PERMISSION,
		    "process %d is already traced by %s (pid %d), and a process has one tracer at a time; "
		    "end that one, or read without stopping the process: --no-stop",
		    pid, tracer.found ? tracer.name : "another process", target.tracer);
	}

	filtered = diagnose_filter();
	if (filtered)
		return filtered;
	self = read_status(proc, "self");
	capable = self.effective_capabilities >> CAP_SYS_PTRACE_BIT & 1;
	same_user =
	    self.effective == target.real && self.effective == target.effective && self.effective == target.saved;
	yama = read_yama(proc);
	if (!capable && !same_user && self.effective == 0)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "process %d belongs to %s, and rbdump is root without the capability CAP_SYS_PTRACE; give it "
		    "that capability (in a container: --cap-add SYS_PTRACE), or run rbdump as that user",
		    pid, user_name(target.effective, theirs, sizeof(theirs)));
	if (!capable && self.effective != target.effective)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "process %d belongs to %s and rbdump runs as %s; run rbdump as that user, or with sudo", pid,
		    user_name(target.effective, theirs, sizeof(theirs)), user_name(self.effective, ours, sizeof(ours)));
	if (yama >= 3)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "Yama forbids everyone to trace a process (kernel.yama.ptrace_scope is %d), until a reboot "
		    "with another value",
		    yama);
	if (!capable && yama == 2)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "Yama lets only root trace a process (kernel.yama.ptrace_scope is 2); run rbdump with sudo");
	if (!capable && same_user && yama == 1)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "Yama lets only a parent trace a process (kernel.yama.ptrace_scope is 1); run rbdump with "
		    "sudo, or allow it: sudo sysctl kernel.yama.ptrace_scope=0");
	if (!capable)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "process %d is protected from its own user (it has changed its user or gained capabilities "
		    "since it started); run rbdump with sudo",
		    pid);
	return diagnose_capable(proc, pid, errnum);
}
