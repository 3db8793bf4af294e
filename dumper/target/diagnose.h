/*
 * Why access to a process is refused, and what to do about it.
 */
#ifndef RBDUMP_DIAGNOSE_H
#define RBDUMP_DIAGNOSE_H

#include <sys/types.h>

#include "error.h"

/*
 * Finds the cause after a system call on the process was refused.
 *   proc    where procfs is: "/proc", or a tree of files like it
 *   pid     the process
 *   errnum  errno of the call that failed
 * Returns EXIT_NO_PERMISSION and one sentence: traced already (by whom), a filter of system calls, another user's, no
 * CAP_SYS_PTRACE, Yama, or not dumpable, in this order; or EXIT_FAILED if there is no such process (any more).
 */
struct error *diagnose_refusal(const char *proc, pid_t pid, int errnum) __attribute__((returns_nonnull));

#endif
