/*
 * Taking privileges from this process, for good: what comes after it is to read what is anybody's.
 */
#ifndef RBDUMP_CONFINE_H
#define RBDUMP_CONFINE_H

#include <stdbool.h>

/*
 * From now on, this process can read files, use memory and write to `answer`, and nothing else. What is open for
 * others, and memory that is shared with others, is the caller's to take away before. answer  descriptor of a pipe
 *   processes  whether files are to be reached by /proc/PID/root: that takes CAP_SYS_PTRACE, which is kept then
 *   server  whether libdebuginfod is to work: sockets, threads, and files that are written to, too
 * Returns NULL, or what could not be done, owned by nobody; errno says why.
 */
const char *confine(int answer, bool processes, bool server);

#endif
