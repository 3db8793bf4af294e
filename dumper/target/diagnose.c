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
	uint64_t effective_capabilities, permitted_capabilities;
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
		else if (sscanf(line, "CapPrm: %llx", &capabilities) == 1)
			status.permitted_capabilities = capabilities;
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
 * Whether a seccomp filter that rbdump runs under refuses a system call. It is tried on this process itself, because
 * the kernel's own checks allow that.
 */
static bool reading_is_filtered(void)
{
	char from = 0, to;
	struct iovec local = {&to, 1}, remote = {&from, 1};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 &&
	       (errno == EPERM || errno == ENOSYS || errno == EACCES);
}

/* Without a filter, the error is ESRCH, because rbdump does not trace itself (ptrace(2)). */
static bool tracing_is_filtered(void)
{
	return ptrace(PTRACE_PEEKUSER, getpid(), NULL, NULL) < 0 && errno != ESRCH && errno != EIO;
}

/* The error if a seccomp filter is the cause; NULL if it is not. */
static struct error *diagnose_filter(void)
{
	const bool reading = reading_is_filtered(), tracing = tracing_is_filtered();

	if (!reading && !tracing)
		return NULL;
	return error_create(
	    EXIT_NO_PERMISSION,
	    "a seccomp filter does not let rbdump call %s%s%s; allow %s in the container's seccomp profile "
	    "(with Docker's default profile: --cap-add SYS_PTRACE), or run rbdump outside of the container%s",
	    reading ? "process_vm_readv(2)" : "", reading && tracing ? " and " : "", tracing ? "ptrace(2)" : "",
	    reading && tracing ? "them" : "it", reading ? "" : "; or read without stopping the process: --no-stop");
}

/* Whether rbdump is in a user namespace other than the initial one, which has all user ids (user_namespaces(7)). */
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

/* The label of the security module that confines rbdump; "" if none does. */
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

/* rbdump has CAP_SYS_PTRACE, but is refused. */
static struct error *diagnose_capable(const char *proc, pid_t pid, int errnum)
{
	char label[128];

	if (in_user_namespace(proc))
		return error_create(
		    EXIT_NO_PERMISSION,
		    "the kernel refuses access to process %d (%s): rbdump has CAP_SYS_PTRACE only for processes in "
		    "its own user namespace; run rbdump on the host, or in the namespace of the process",
		    pid, strerror(errnum));
	read_label(proc, label, sizeof(label));
	if (label[0])
		return error_create(
		    EXIT_NO_PERMISSION,
		    "the kernel refuses access to process %d (%s), though rbdump has CAP_SYS_PTRACE; the "
		    "security module that confines rbdump (%s) may be the cause: see the kernel's log, or "
		    "run rbdump unconfined",
		    pid, strerror(errnum), label);
	return error_create(EXIT_NO_PERMISSION,
			    "the kernel refuses access to process %d (%s) for an unknown reason, though rbdump has "
			    "CAP_SYS_PTRACE; the kernel's log may give the reason. If rbdump runs in a container, "
			    "run rbdump outside of the container",
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
		return error_create(
		    EXIT_FAILED, "process %d (%s) is a zombie: it has ended, and its parent has not waited for it yet",
		    pid, target.name);
	if (errnum == ESRCH)
		return error_create(EXIT_FAILED, "there is no process %d", pid);
	if (process_stat_read(proc, pid, &stat) && stat.ending)
		return error_create(EXIT_FAILED, "process %d (%s) is ending", pid, target.name);
	if (target.tracer != 0) {
		snprintf(number, sizeof(number), "%d", target.tracer);
		tracer = read_status(proc, number);
		return error_create(
		    EXIT_NO_PERMISSION,
		    "process %d is already traced by %s (pid %d), and a process can have only one tracer at a time; "
		    "end that tracer, or read without stopping the process: --no-stop",
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
		    "process %d belongs to %s, and rbdump runs as root without CAP_SYS_PTRACE; run rbdump as that "
		    "user, or with that capability (in a container: --cap-add SYS_PTRACE)",
		    pid, user_name(target.effective, theirs, sizeof(theirs)));
	if (!capable && self.effective != target.effective)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "process %d belongs to %s and rbdump runs as %s; run rbdump as that user, or with sudo", pid,
		    user_name(target.effective, theirs, sizeof(theirs)), user_name(self.effective, ours, sizeof(ours)));
	if (yama >= 3)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "Yama forbids all tracing (kernel.yama.ptrace_scope is %d); only a reboot can change that value",
		    yama);
	if (!capable && yama == 2)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "Yama allows only root to trace processes (kernel.yama.ptrace_scope is 2); run rbdump with sudo");
	if (!capable && same_user && yama == 1)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "Yama lets a process trace only its own descendants (kernel.yama.ptrace_scope is 1); run rbdump "
		    "with sudo, or lift this restriction: sudo sysctl kernel.yama.ptrace_scope=0");
	/* security/commoncap.c, cap_ptrace_access_check() */
	if (!capable && (target.permitted_capabilities & ~self.effective_capabilities) != 0)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "process %d has capabilities that rbdump lacks; run rbdump with CAP_SYS_PTRACE (with sudo; in a "
		    "container: --cap-add SYS_PTRACE)",
		    pid);
	if (!capable)
		return error_create(
		    EXIT_NO_PERMISSION,
		    "the kernel protects process %d from its own user, because the process has changed its user or "
		    "gained capabilities since it started; run rbdump with sudo",
		    pid);
	return diagnose_capable(proc, pid, errnum);
}
