#include "trust/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The largest programs have some GB of debug info. */
#define MAX_MEMORY  (UINT64_C(4) << 30)
#define MAX_SECONDS 120

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER
#endif
#endif

/* The system calls that read files and use memory. */
static const int reading[] = {
    SCMP_SYS(read),	    SCMP_SYS(pread64),	       SCMP_SYS(readv),
    SCMP_SYS(close),	    SCMP_SYS(fstat),	       SCMP_SYS(stat),
    SCMP_SYS(lstat),	    SCMP_SYS(newfstatat),      SCMP_SYS(statx),
    SCMP_SYS(fstatfs),	    SCMP_SYS(lseek),	       SCMP_SYS(access),
    SCMP_SYS(faccessat),    SCMP_SYS(faccessat2),      SCMP_SYS(readlink),
    SCMP_SYS(readlinkat),   SCMP_SYS(getcwd),	       SCMP_SYS(getdents64),
    SCMP_SYS(dup),	    SCMP_SYS(fadvise64),       SCMP_SYS(munmap),
    SCMP_SYS(mremap),	    SCMP_SYS(madvise),	       SCMP_SYS(brk),
    SCMP_SYS(futex),	    SCMP_SYS(memfd_create),    SCMP_SYS(ftruncate),
    SCMP_SYS(pwrite64),	    SCMP_SYS(clock_gettime),   SCMP_SYS(gettimeofday),
    SCMP_SYS(getrandom),    SCMP_SYS(getpid),	       SCMP_SYS(gettid),
    SCMP_SYS(getuid),	    SCMP_SYS(geteuid),	       SCMP_SYS(getgid),
    SCMP_SYS(getegid),	    SCMP_SYS(getrlimit),       SCMP_SYS(sysinfo),
    SCMP_SYS(uname),	    SCMP_SYS(sched_yield),     SCMP_SYS(sched_getaffinity),
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),  SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),  SCMP_SYS(restart_syscall), SCMP_SYS(exit),
    SCMP_SYS(exit_group),
};

/* What libdebuginfod needs in addition. */
static const int asking[] = {
    SCMP_SYS(fcntl),	   SCMP_SYS(open),
    SCMP_SYS(openat),	   SCMP_SYS(write),
    SCMP_SYS(writev),	   SCMP_SYS(mmap),
    SCMP_SYS(mprotect),	   SCMP_SYS(socket),
    SCMP_SYS(socketpair),  SCMP_SYS(connect),
    SCMP_SYS(bind),	   SCMP_SYS(getsockname),
    SCMP_SYS(getpeername), SCMP_SYS(getsockopt),
    SCMP_SYS(setsockopt),  SCMP_SYS(sendto),
    SCMP_SYS(sendmsg),	   SCMP_SYS(sendmmsg),
    SCMP_SYS(recvfrom),	   SCMP_SYS(recvmsg),
    SCMP_SYS(shutdown),	   SCMP_SYS(poll),
    SCMP_SYS(ppoll),	   SCMP_SYS(select),
    SCMP_SYS(pselect6),	   SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl),   SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait), SCMP_SYS(eventfd2),
    SCMP_SYS(pipe),	   SCMP_SYS(pipe2),
    SCMP_SYS(ioctl),	   SCMP_SYS(clone),
    SCMP_SYS(clone3),	   SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),	   SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),   SCMP_SYS(mkdir),
    SCMP_SYS(mkdirat),	   SCMP_SYS(rename),
    SCMP_SYS(renameat),	   SCMP_SYS(renameat2),
    SCMP_SYS(unlink),	   SCMP_SYS(unlinkat),
    SCMP_SYS(rmdir),	   SCMP_SYS(fchmod),
    SCMP_SYS(utimensat),   SCMP_SYS(utimes),
    SCMP_SYS(chdir),	   SCMP_SYS(fchdir),
    SCMP_SYS(umask),	   SCMP_SYS(prlimit64),
    SCMP_SYS(fsync),	   SCMP_SYS(flock),
    SCMP_SYS(prctl),	   SCMP_SYS(tgkill),
    SCMP_SYS(alarm),	   SCMP_SYS(setitimer),
};

/*
 * Keeps only CAP_DAC_READ_SEARCH, or else CAP_DAC_OVERRIDE, which includes it; for `processes`, CAP_SYS_PTRACE, too.
 */
static bool drop_capabilities(bool processes)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}, {0}};
	const uint32_t read = 1u << CAP_DAC_READ_SEARCH, override = 1u << CAP_DAC_OVERRIDE;
	uint32_t kept;

	if (syscall(SYS_capget, &header, data) != 0)
		return false;
	kept = data[0].permitted & (data[0].permitted & read ? read : override);
	if (processes)
		kept |= data[0].permitted & 1u << CAP_SYS_PTRACE;
	data[0] = (struct __user_cap_data_struct){.effective = kept, .permitted = kept};
	data[1] = (struct __user_cap_data_struct){0};
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &header, data) == 0;
}

static bool limit(int what, rlim_t most)
{
	struct rlimit now;

	if (getrlimit(what, &now) != 0)
		return false;
	if (now.rlim_max > most)
		now.rlim_max = most;
	if (now.rlim_cur > now.rlim_max)
		now.rlim_cur = now.rlim_max;
	return setrlimit(what, &now) == 0;
}

static bool set_limits(void)
{
#ifndef HAS_ADDRESS_SANITIZER
	/* The address sanitizer reserves much more. */
	if (!limit(RLIMIT_AS, MAX_MEMORY))
		return false;
#endif
	return limit(RLIMIT_CPU, MAX_SECONDS) && limit(RLIMIT_CORE, 0);
}

static int allow(scmp_filter_ctx filter, const int *calls, size_t count)
{
	int failed = 0;

	for (size_t i = 0; i < count && failed == 0; i++)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	return failed;
}

/* Allows to open files for reading, to map memory that is not code, to write the answer, and abort(3). */
static int allow_bounded(scmp_filter_ctx filter, int answer)
{
	/* Not those with which the kernel sends signals to other processes (F_SETOWN, F_SETSIG, O_ASYNC). */
	static const int uses_of_fcntl[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,	  F_SETFD,
					    F_GETFL, F_ADD_SEALS,     F_GET_SEALS};
	const uint64_t no_writing = O_ACCMODE | O_CREAT | O_TRUNC;
	int failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
				      SCMP_A1(SCMP_CMP_MASKED_EQ, no_writing, O_RDONLY));

	if (failed == 0)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
					  SCMP_A2(SCMP_CMP_MASKED_EQ, no_writing, O_RDONLY));
	if (failed == 0)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
					  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (failed == 0)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
					  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (failed == 0)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1,
					  SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)answer));
	if (failed == 0)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 2,
					  SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()), SCMP_A2(SCMP_CMP_EQ, SIGABRT));
	for (size_t i = 0; i < sizeof(uses_of_fcntl) / sizeof(uses_of_fcntl[0]) && failed == 0; i++)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
					  SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)uses_of_fcntl[i]));
	return failed;
}

/* What is not allowed fails with EPERM, which libraries can handle. */
static int set_filter(int answer, bool server)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int failed;

	if (!filter)
		return -ENOMEM;
	failed = allow(filter, reading, sizeof(reading) / sizeof(reading[0]));
	if (failed == 0)
		failed =
		    server ? allow(filter, asking, sizeof(asking) / sizeof(asking[0])) : allow_bounded(filter, answer);
	if (failed == 0)
		failed = seccomp_load(filter);
	seccomp_release(filter);
	return failed;
}

const char *confine(int answer, bool processes, bool server)
{
	int failed;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return "PR_SET_NO_NEW_PRIVS";
	if (!drop_capabilities(processes))
		return "giving up capabilities";
	if (!set_limits())
		return "setting limits";
	failed = set_filter(answer, server);
	errno = failed < 0 ? -failed : 0;
	return failed < 0 ? "installing a seccomp filter" : NULL;
}
