/*
 * Starts a program, and waits until rbdump can read it as a Ruby process.
 */
#ifndef RBDUMP_LAUNCH_H
#define RBDUMP_LAUNCH_H

#include <sys/types.h>

#include "base/error.h"
#include "session/open.h"

/*
 * Searches PATH for a program, and starts the program. The program inherits the open files and the environment of
 * rbdump. If the program cannot be started, the error names the program. The program runs in a child process. Before the
 * program begins, this child process permits the calling process to trace the child process (PR_SET_PTRACER). If Yama's
 * ptrace_scope is 1, only the following processes can trace the program without CAP_SYS_PTRACE: the ancestors of the
 * program, the permitted process, and the descendants of the permitted process.
 *   group  rbdump's process group. The program joins this group. If this group is the foreground group of a terminal,
 *          the program can then read from the terminal
 */
struct error *launch(char *const command[], pid_t group, pid_t *ret);

/*
 * Opens a session with a child process that might not be a Ruby process yet. Repeats the attempt until the session is
 * open, until the process has ended, or until half a minute has passed. Also gives up if *stop is not 0 after an
 * attempt that failed.
 */
struct error *launch_session(pid_t pid, const struct session_options *options, const _Atomic int *stop,
			     struct session **ret);

#endif
