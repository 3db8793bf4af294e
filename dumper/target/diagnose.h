/*
 * Finds out why the kernel refused access to a process, and what the user can do.
 */
#ifndef RBDUMP_DIAGNOSE_H
#define RBDUMP_DIAGNOSE_H

#include <sys/types.h>

#include "base/error.h"

/*
 * Call this function after a system call on a process has failed. Finds out why the kernel refused the system call.
 *   proc    the path of procfs ("/proc"), or of a folder with the same structure
 *   pid     the process
 *   errnum  errno of the call that failed
 * Returns an error with EXIT_FAILED if the process does not exist, has ended, or is ending. Otherwise, returns an error
 * with EXIT_NO_PERMISSION. The message names the cause, or says that the cause is unknown. The following causes are
 * checked, in this order:
 * - the process has another tracer, which the message names;
 * - a seccomp filter refuses a system call;
 * - the process belongs to another user, and rbdump lacks CAP_SYS_PTRACE;
 * - Yama restricts tracing;
 * - the process has capabilities that rbdump lacks;
 * - the process is not dumpable, and rbdump lacks CAP_SYS_PTRACE;
 * - rbdump has CAP_SYS_PTRACE, but only in its own user namespace;
 * - a security module confines rbdump.
 */
struct error *diagnose_refusal(const char *proc, pid_t pid, int errnum) __attribute__((returns_nonnull));

#endif
