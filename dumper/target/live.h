/*
 * A live process as a target: stopping it and letting it go on.
 *
 * The target survives whatever happens to rbdump: threads are seized, not attached to, so that nothing is sent to them,
 * and the kernel lets them go on if the tracer dies. A process that was stopped (SIGSTOP) before stays stopped.
 *
 * All calls for one target come from the thread that stopped it (a rule of ptrace(2)). It has SIGCHLD blocked from
 * before live_stop(), which waits for it, until after live_resume().
 */
#ifndef RBDUMP_LIVE_H
#define RBDUMP_LIVE_H

#include "target/target.h"

/*
 * Opens a process. Fails with EXIT_FAILED if there is none, with EXIT_NO_PERMISSION and the cause if the kernel refuses
 * access to it. target_close() ends it.
 */
struct error *live_open(pid_t pid, struct target **ret);

/*
 * Whether its memory can be read by process_vm_readv(2). live_open() takes /proc/PID/mem where that is refused, which
 * reads page by page; sampling needs the call. Fails as live_open().
 */
struct error *live_check_calls(const struct target *target);

/*
 * Stops every thread of the target and takes its registers. A thread that is in an uninterruptible sleep, or does not
 * stop within half a second, is left, and marked; it stays seized until the calling thread ends. One that the kernel
 * refuses, because another tracer has it, is listed as refused. Fails, with the target going on, if the kernel refuses
 * the main thread, or all that there are.
 */
struct error *live_stop(struct target *target);

/* Lets every thread go on, with the signal that it was about to get, and gives up tracing. Nothing if not stopped. */
void live_resume(struct target *target);

/*
 * Reads the mappings anew: a process may have got more memory since it was opened. Those of before are gone, unless
 * there are none to be had.
 */
void live_update_mappings(struct target *target);

/* Whether the process is gone, or on its way out of the kernel: then it has no memory any more, or soon. */
bool live_is_ending(const struct target *target);

/*
 * Whether the memory that was opened is no process's any more: it has ended, or has become another program. Its file
 * stays that of the old memory (fs/proc/base.c, mem_rw()).
 */
bool live_is_gone(const struct target *target);

/* Ids of a process's native threads, in ascending order, malloc'ed; NULL and 0 if it is gone. */
pid_t *live_list_threads(pid_t pid, size_t *count);

/* What a native thread is called in the innermost pid namespace that it is in (proc(5), NSpid); 0 if that is not told.
 */
pid_t live_inner_id(pid_t pid, pid_t tid);

/* ---- how target.h does it for a process */

void live_close(struct target *target); /* what is no other kind's: resumes it, closes its files */

/*
 * The calls are as few as can be, with as many pages each as process_vm_readv takes. A page that this refuses
 * (PROT_NONE: Ruby protects pages while it compacts its heap) is read through /proc/PID/mem.
 */
void live_read_pages(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok);

/*
 * Through map_files if that is allowed, /proc/PID/exe if it is the executable, else by its name below the target's own
 * root (it may live in a container).
 */
int live_open_file(const struct target *target, const struct mapping *mapping);

#endif
