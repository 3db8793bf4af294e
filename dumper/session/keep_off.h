/*
 * Keeps rbdump off the CPUs on which the target's threads run, while rbdump reads a process that it does not stop. If
 * rbdump and the target share a CPU, the kernel makes the target wait for some milliseconds again and again. If they do
 * not share a CPU, the target does not notice that rbdump reads it.
 */
#ifndef RBDUMP_KEEP_OFF_H
#define RBDUMP_KEEP_OFF_H

#include <sys/types.h>

struct keep_off;

/*
 * Starts a thread. Every few milliseconds, this thread finds out on which CPUs the threads of the process `pid` run,
 * and moves all threads of rbdump to other CPUs. Uses only CPUs that rbdump was allowed to use before this call. If the
 * target runs on all of these CPUs, rbdump uses all of them, too. Returns NULL if no thread can be started, if rbdump
 * may use only one CPU, or if there is not enough memory. In these cases, rbdump can use the same CPUs as before this
 * call.
 */
struct keep_off *keep_off_begin(pid_t pid);

/* Ends the thread that keep_off_begin() has started, and lets rbdump use all its CPUs again. NULL is fine. */
void keep_off_end(struct keep_off *keep);

#endif
