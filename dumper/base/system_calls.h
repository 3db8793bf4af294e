/*
 * The system calls of x86_64: their names, and the numbers of system calls that the headers of some distributions lack.
 */
#ifndef RBDUMP_SYSTEM_CALLS_H
#define RBDUMP_SYSTEM_CALLS_H

#include <sys/syscall.h>

/* For example, Debian 11 has the headers of Linux 5.10, which lack the system calls below. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* Linux 5.11 */
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449 /* Linux 5.16 */
#endif

/*
 * Returns the name of a system call, such as "read". Returns NULL if the headers with which rbdump was built do not
 * contain this system call.
 */
const char *system_call_name(int number);

#endif
