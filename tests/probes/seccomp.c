/*
 * Runs a program under a filter that refuses system calls, as a container's seccomp profile does.
 *   seccomp CALL[,CALL…] COMMAND …
 */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	char *rest = NULL;

	if (argc < 3 || !filter)
		return 125;
	for (char *name = strtok_r(argv[1], ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		int number = seccomp_syscall_resolve_name(name);

		if (number == __NR_SCMP_ERROR || seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0) != 0) {
			fprintf(stderr, "%s: no such system call\n", name);
			return 125;
		}
	}
	if (seccomp_load(filter) != 0)
		return 125;
	seccomp_release(filter);
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 125;
}
