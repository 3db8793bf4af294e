/* Every cause of a refusal, from a procfs that says what is wanted. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/diagnose.h"

#define PID    4711
#define NOBODY 65534

static char proc[] = "/tmp/rbdump-proc-XXXXXX";

static void write_file(const char *name, const char *content)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	for (char *slash = strchr(path + strlen(proc) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(content, file);
	fclose(file);
}

static void write_status(const char *who, const char *name, char state, int tracer, int uid,
			 unsigned long long capabilities)
{
	char content[512], path[64];

	snprintf(
	    content, sizeof(content),
	    "Name:\t%s\nUmask:\t0022\nState:\t%c (whatever)\nTracerPid:\t%d\nUid:\t%d\t%d\t%d\t%d\nCapEff:\t%016llx\n",
	    name, state, tracer, uid, uid, uid, uid, capabilities);
	snprintf(path, sizeof(path), "%s/status", who);
	write_file(path, content);
}

static void remove_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	unlink(path);
}

/* A Ruby of user nobody, sleeping; rbdump runs as nobody without capabilities; no Yama. */
static int set_up(void **state)
{
	(void)state;
	write_status("4711", "ruby", 'S', 0, NOBODY, 0);
	write_status("self", "rbdump", 'R', 0, NOBODY, 0);
	remove_file("sys/kernel/yama/ptrace_scope");
	remove_file("self/uid_map");
	remove_file("self/attr/current");
	return 0;
}

static void assert_diagnosed(int errnum, enum exit_status status, const char *message)
{
	struct error *error = diagnose_refusal(proc, PID, errnum);

	assert_string_equal(error->message, message);
	assert_int_equal(error->status, status);
	error_destroy(error);
}

static void test_no_process(void **state)
{
	(void)state;
	remove_file("4711/status");
	assert_diagnosed(ENOENT, EXIT_FAILED, "there is no process 4711");
}

static void test_zombie(void **state)
{
	(void)state;
	write_status("4711", "ruby", 'Z', 0, NOBODY, 0);
	assert_diagnosed(EPERM, EXIT_FAILED,
			 "process 4711 (ruby) is a zombie: it has ended, and its parent has not waited for it yet");
}

/* A tracer, and what is said of it; without a name it is not there to be asked for one. */
static void assert_traced_by(pid_t tracer, const char *name, const char *said)
{
	char message[512], who[16];

	write_status("4711", "ruby", 't', tracer, NOBODY, 0);
	snprintf(who, sizeof(who), "%d", tracer);
	if (name)
		write_status(who, name, 'S', 0, NOBODY, 0);
	snprintf(
	    message, sizeof(message),
	    "process 4711 is already traced by %s, and a process can have only one tracer at a time; end that tracer, "
	    "or read without stopping the process: --no-stop",
	    said);
	assert_diagnosed(EPERM, EXIT_NO_PERMISSION, message);
}

static void test_traced(void **state)
{
	(void)state;
	assert_traced_by(99, "gdb", "gdb (pid 99)");
}

static void test_traced_by_a_name_with_spaces(void **state)
{
	(void)state;
	assert_traced_by(99, "tmux: server 1", "tmux: server 1 (pid 99)");
}

/* Another namespace's, or one that has just ended. */
static void test_traced_by_nobody_known(void **state)
{
	(void)state;
	assert_traced_by(98, NULL, "another process (pid 98)");
}

static void test_ended_meanwhile(void **state)
{
	(void)state;
	assert_diagnosed(ESRCH, EXIT_FAILED, "there is no process 4711");
	write_status("4711", "ruby", 'X', 0, NOBODY, 0);
	assert_diagnosed(ESRCH, EXIT_FAILED,
			 "process 4711 (ruby) is a zombie: it has ended, and its parent has not waited for it yet");
}

/* The kernel has taken its memory already: whatever the call said, that is why. */
static void test_ending(void **state)
{
	(void)state;
	write_file("4711/stat", "4711 (ruby) x) R 1 2 3 4 5 4194308 9 9 9 9 1 2 3 4 20 0 1 0 100 4096 7\n");
	assert_diagnosed(EPERM, EXIT_FAILED, "process 4711 (ruby) is ending");
	write_file("4711/stat", "4711 (ruby) x) R 1 2 3 4 5 4194304 9 9 9 9 1 2 3 4 20 0 1 0 100 4096 7\n");
	assert_traced_by(99, "gdb", "gdb (pid 99)");
	remove_file("4711/stat");
}

/* One that could be root again is of three users, and all of them count; nor is Yama's value its cure. */
static void test_other_saved_user(void **state)
{
	(void)state;
	write_file("4711/status", "Name:\truby\nState:\tS (sleeping)\nTracerPid:\t0\nUid:\t65534\t65534\t0\t65534\n");
	write_file("sys/kernel/yama/ptrace_scope", "1\n");
	assert_diagnosed(
	    EPERM, EXIT_NO_PERMISSION,
	    "the kernel protects process 4711 from its own user, because the process has changed its user or gained "
	    "capabilities since it started; run rbdump with sudo");
}

static void test_other_user(void **state)
{
	(void)state;
	write_status("4711", "ruby", 'S', 0, 0, 0);
	assert_diagnosed(
	    EACCES, EXIT_NO_PERMISSION,
	    "process 4711 belongs to root (uid 0) and rbdump runs as nobody (uid 65534); run rbdump as that user, or "
	    "with sudo");
}

static void test_other_user_before_yama(void **state)
{
	(void)state;
	write_status("4711", "ruby", 'S', 0, 4242, 0);
	write_file("sys/kernel/yama/ptrace_scope", "1\n");
	assert_diagnosed(
	    EACCES, EXIT_NO_PERMISSION,
	    "process 4711 belongs to uid 4242 and rbdump runs as nobody (uid 65534); run rbdump as that user, or with "
	    "sudo");
}

static void test_root_without_capability(void **state)
{
	(void)state;
	write_status("self", "rbdump", 'R', 0, 0, 0x1fffffffffULL & ~(1ULL << 19));
	assert_diagnosed(EACCES, EXIT_NO_PERMISSION,
			 "process 4711 belongs to nobody (uid 65534), and rbdump runs as root without CAP_SYS_PTRACE; "
			 "run rbdump as that user, or with that capability (in a container: --cap-add SYS_PTRACE)");
}

static void test_yama_1(void **state)
{
	(void)state;
	write_file("sys/kernel/yama/ptrace_scope", "1\n");
	assert_diagnosed(
	    EPERM, EXIT_NO_PERMISSION,
	    "Yama lets a process trace only its own descendants (kernel.yama.ptrace_scope is 1); run rbdump with sudo, "
	    "or lift this restriction: sudo sysctl kernel.yama.ptrace_scope=0");
}

static void test_yama_2(void **state)
{
	(void)state;
	write_file("sys/kernel/yama/ptrace_scope", "2\n");
	assert_diagnosed(
	    EPERM, EXIT_NO_PERMISSION,
	    "Yama allows only root to trace processes (kernel.yama.ptrace_scope is 2); run rbdump with sudo");
}

static void test_yama_3(void **state)
{
	(void)state;
	/* Not even root. */
	write_status("self", "rbdump", 'R', 0, 0, 0x1fffffffffULL);
	write_file("sys/kernel/yama/ptrace_scope", "3\n");
	assert_diagnosed(
	    EPERM, EXIT_NO_PERMISSION,
	    "Yama forbids all tracing (kernel.yama.ptrace_scope is 3); only a reboot can change that value");
}

static void test_not_dumpable(void **state)
{
	(void)state;
	write_file("sys/kernel/yama/ptrace_scope", "0\n");
	assert_diagnosed(
	    EPERM, EXIT_NO_PERMISSION,
	    "the kernel protects process 4711 from its own user, because the process has changed its user or gained "
	    "capabilities since it started; run rbdump with sudo");
}

/* With the same user, but of a container with fewer capabilities, as cap_ptrace_access_check() of the kernel sees it. */
static void test_fewer_capabilities(void **state)
{
	(void)state;
	write_file("4711/status", "Name:\truby\nState:\tS (sleeping)\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n"
				  "CapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\n");
	write_status("self", "rbdump", 'R', 0, 0, 0x1fffffffffULL & ~(1ULL << 19));
	write_file("sys/kernel/yama/ptrace_scope", "0\n");
	assert_diagnosed(EPERM, EXIT_NO_PERMISSION,
			 "process 4711 has capabilities that rbdump lacks; run rbdump with CAP_SYS_PTRACE (with sudo; "
			 "in a container: "
			 "--cap-add SYS_PTRACE)");
}

static void test_security_module(void **state)
{
	(void)state;
	write_status("self", "rbdump", 'R', 0, 0, 0x1fffffffffULL);
	write_file("self/uid_map", "         0          0 4294967295\n");
	write_file("self/attr/current", "rbdump-profile (enforce)\n");
	assert_diagnosed(
	    EACCES, EXIT_NO_PERMISSION,
	    "the kernel refuses access to process 4711 (Permission denied), though rbdump has CAP_SYS_PTRACE; the "
	    "security module that confines rbdump (rbdump-profile (enforce)) may be the cause: see the kernel's log, "
	    "or run rbdump unconfined");
}

/* A module that does not confine rbdump is not blamed, and neither is one that is not there. */
static void test_no_security_module(void **state)
{
	static const char unknown[] =
	    "the kernel refuses access to process 4711 (Permission denied) for an unknown reason, though "
	    "rbdump has CAP_SYS_PTRACE; the kernel's log may give the reason. If rbdump runs in a container, run "
	    "rbdump outside of the container";

	(void)state;
	write_status("self", "rbdump", 'R', 0, 0, 0x1fffffffffULL);
	write_file("self/uid_map", "         0          0 4294967295\n");
	write_file("self/attr/current", "unconfined\n");
	assert_diagnosed(EACCES, EXIT_NO_PERMISSION, unknown);
	remove_file("self/attr/current");
	assert_diagnosed(EACCES, EXIT_NO_PERMISSION, unknown);
}

static void test_user_namespace(void **state)
{
	(void)state;
	write_status("self", "rbdump", 'R', 0, 0, 0x1fffffffffULL);
	write_file("self/uid_map", "         0       1000          1\n");
	assert_diagnosed(
	    EACCES, EXIT_NO_PERMISSION,
	    "the kernel refuses access to process 4711 (Permission denied): rbdump has CAP_SYS_PTRACE only for "
	    "processes in its own user namespace; run rbdump on the host, or in the namespace of the process");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_no_process, set_up),
	    cmocka_unit_test_setup(test_zombie, set_up),
	    cmocka_unit_test_setup(test_traced, set_up),
	    cmocka_unit_test_setup(test_traced_by_a_name_with_spaces, set_up),
	    cmocka_unit_test_setup(test_traced_by_nobody_known, set_up),
	    cmocka_unit_test_setup(test_ended_meanwhile, set_up),
	    cmocka_unit_test_setup(test_ending, set_up),
	    cmocka_unit_test_setup(test_other_saved_user, set_up),
	    cmocka_unit_test_setup(test_other_user, set_up),
	    cmocka_unit_test_setup(test_other_user_before_yama, set_up),
	    cmocka_unit_test_setup(test_root_without_capability, set_up),
	    cmocka_unit_test_setup(test_yama_1, set_up),
	    cmocka_unit_test_setup(test_yama_2, set_up),
	    cmocka_unit_test_setup(test_yama_3, set_up),
	    cmocka_unit_test_setup(test_not_dumpable, set_up),
	    cmocka_unit_test_setup(test_fewer_capabilities, set_up),
	    cmocka_unit_test_setup(test_security_module, set_up),
	    cmocka_unit_test_setup(test_no_security_module, set_up),
	    cmocka_unit_test_setup(test_user_namespace, set_up),
	};
	int failed;

	if (!mkdtemp(proc))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_file("4711/status");
	remove_file("self/status");
	remove_file("self/uid_map");
	remove_file("self/attr/current");
	remove_file("99/status");
	remove_file("sys/kernel/yama/ptrace_scope");
	for (size_t i = 0; i < 7; i++) {
		static const char *const folders[] = {"/4711",	     "/self/attr", "/self", "/99", "/sys/kernel/yama",
						      "/sys/kernel", "/sys"};
		char path[256];

		snprintf(path, sizeof(path), "%s%s", proc, folders[i]);
		rmdir(path);
	}
	rmdir(proc);
	return failed;
}
