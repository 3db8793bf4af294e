/*
 * What a process was started with: its command line, the name of its program, and the names of the variables in its
 * environment. The values of these variables are not read into the output: they are often secret.
 */
#ifndef RBDUMP_DUMP_ARGUMENTS_H
#define RBDUMP_DUMP_ARGUMENTS_H

#include "render/render.h"
#include "session/session.h"

/*
 * Reads the arguments of the session's target, and puts them into the trace. The kernel tells the command line and the
 * environment of a live process as the process was given them; a process can write over them. The core of a process has
 * the beginning of the command line, as one string of at most 80 bytes, and does not tell where the environment is. What
 * cannot be read is NULL. Returns false if there is not enough memory.
 *   proc  the folder of procfs
 */
bool process_arguments_read(const char *proc, const struct session *session, struct trace *trace);

#endif
