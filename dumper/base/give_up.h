/*
 * Ends the calling process, for cases in which the process cannot continue. For example, a thread of rbdump can be
 * stuck in the kernel, because the thread waits for a page of the target's memory that never arrives. This happens if
 * the page must come from a dead file system, or through userfaultfd(2) from a process that does not respond. Such a
 * wait cannot be interrupted: it ends only when the waiting process ends. When the process ends, the kernel resumes
 * every thread that the process has stopped.
 */
#ifndef RBDUMP_GIVE_UP_H
#define RBDUMP_GIVE_UP_H

/*
 * Writes a message to standard error, and ends the process with EXIT_FAILED. Allocates no memory, and takes no lock
 * that another thread might hold. Any thread may call this function.
 *   message  a text of the form "rbdump: ..." that ends with a newline; it is written unchanged, without escaping
 */
_Noreturn void give_up(const char *message);

#endif
