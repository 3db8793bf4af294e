/*
 * Drops the privileges of this process permanently, before the process reads a file that may be hostile.
 */
#ifndef RBDUMP_CONFINE_H
#define RBDUMP_CONFINE_H

#include <stdbool.h>

/*
 * Confines this process. After the call, the process can only read files, use memory and write to `answer`. Before the
 * call, the caller must close all other open files, and unmap memory that is shared with other processes.
 *   answer     descriptor of a socket or pipe
 *   processes  whether this process will read files through /proc/PID/root; if true, the process keeps
 *              CAP_SYS_PTRACE
 *   server     whether libdebuginfod must work; if true, sockets, threads, and writing to files are also allowed
 * Returns NULL on success. On failure, sets errno, and returns the name of the failed step as a constant string.
 */
const char *confine(int answer, bool processes, bool server);

#endif
