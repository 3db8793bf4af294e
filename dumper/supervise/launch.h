/*
 * Starting a target, and waiting until it is a Ruby that can be looked at.
 */
#ifndef RBDUMP_LAUNCH_H
#define RBDUMP_LAUNCH_H

#include <sys/types.h>

#include "error.h"
#include "session/session.h"

/*
 * Starts a program, found in PATH, with rbdump's own files and environment. Fails, naming it, if there is none. Where
 * only those that descend from it, or that it names, may trace a process (Yama), it names who has started it. group the
 * process group that it is to be in: rbdump's own, which may have the terminal
 */
struct error *launch(char *const command[], pid_t group, pid_t *ret);

/*
 * Opens a session with a process that may still be on its way to become a Ruby: tries until it is one, or has ended, or
 * half a minute is over. *stop ends it early.
 */
struct error *launch_session(pid_t pid, const struct session_options *options, const _Atomic int *stop,
			     struct session **ret);

#endif
