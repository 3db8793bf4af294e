#include "target/diagnose.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

struct error *diagnose_refusal(const char *proc, pid_t pid, int errnum)
{
	char number[16], theirs[96], ours[96];
	struct process_status target, self, tracer;
	struct process_stat stat;
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
	return error_create(
	    EXIT_NO_PERMISSION,
	    "the kernel refuses access to process %d (%s); a security module (SELinux, AppArmor, seccomp) or a "
	    "user namespace stands in the way: try from the host, as root",
	    pid, strerror(errnum));
}
