/*
 * What a process was started with: its command line, the name of its program, and the names of the variables in its
 * environment. The values of these variables are not read into the output: they are often secret.
 */
#ifndef RBDUMP_PROCESS_ARGUMENTS_H
#define RBDUMP_PROCESS_ARGUMENTS_H

#include "session/session.h"
#include "trace/trace.h"

/*
 * Reads the arguments of the session's target, and puts them into the trace. The kernel tells the command line and the
 * environment of a live process as the process was given them; a process can write over them. The core of a process has
 * the beginning of the command line, as one string of at most 80 bytes, and does not tell where the environment is. What
 * cannot be read is NULL. Returns false if there is not enough memory.
 *   proc          the folder of procfs
 *   time_limit_s  the time limit (time_limit.h), because each of these reads is one of the target's memory, and might never
 *                 return; 0: the default
 */
bool session_add_arguments(const char *proc, const struct session *session, unsigned int time_limit_s,
			   struct trace *trace);

#endif
