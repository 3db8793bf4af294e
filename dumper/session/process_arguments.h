/*
 * What a process was started with: its command line, the name of its program, and the names of the variables in its
 * environment. rbdump does not show the values of these variables, because they are often secret.
 */
#ifndef RBDUMP_PROCESS_ARGUMENTS_H
#define RBDUMP_PROCESS_ARGUMENTS_H

#include "session/session.h"
#include "trace/trace.h"

/*
 * Reads the arguments of the session's target, and puts them into the trace. The command line and the environment of a
 * live process are those with which the process was started, unless the process has overwritten them. A core contains
 * only the beginning of the command line, as one string of at most 80 bytes, and does not say where the environment is.
 * In `trace->arguments`, a list or name that cannot be read is NULL. Returns false if there is not enough memory.
 *   proc          the folder of procfs
 *   time_limit_s  the time limit (time_limit.h); 0: the default. A limit is needed because the arguments are read from
 *                 the target's memory, and such a read might never return
 */
bool session_add_arguments(const char *proc, const struct session *session, unsigned int time_limit_s,
			   struct trace *trace);

#endif
