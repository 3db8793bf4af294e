/*
 * Which native thread of a live process a Ruby thread runs on, for threads that come and go, and whatever pid namespace
 * the process is in.
 *
 * Ruby notes a pthread_t, and since 3.1 a tid. The tid is that of the process's own pid namespace, and after a fork it
 * can be the parent's. The pthread_t is the thread pointer of a native thread (fs_base on x86-64), which only a stop
 * tells. But a thread of glibc has registered its list of robust futexes, which lies in its struct pthread, and
 * get_robust_list(2) tells where without touching the thread. How far that is from the pthread_t is learned from the
 * threads that were there when the session began. Where there is no such list (musl), a new thread is stopped once,
 * and the tid that Ruby noted is compared with what the kernel says of each thread (NSpid of
 * /proc/PID/task/TID/status).
 *
 * No address can be two threads': the kernel forgets the list before it tells that a thread has ended, and only then
 * its struct pthread can become another's (kernel/fork.c, mm_release(), v6.1).
 */
#ifndef RBDUMP_NATIVE_IDS_H
#define RBDUMP_NATIVE_IDS_H

#include "target/target.h"

struct native_ids;

/* Takes the thread pointers that are known from the last stop. NULL if out of memory. The target must outlive it. */
struct native_ids *native_ids_create(const struct target *target);
void native_ids_destroy(struct native_ids *ids); /* NULL is fine */

/*
 * The native thread, in rbdump's own pid namespace, that has a pthread_t, as of this call; 0 if none is known to. It
 * may have ended by the time it is used: whoever stops it can compare its thread pointer. May stop a thread for a
 * moment: to be called by a thread that may trace the target (target/tracee.h).
 *   pthread  0 if Ruby does not tell
 *   noted    the tid that Ruby has noted; 0 if none
 */
pid_t native_ids_find(struct native_ids *ids, uint64_t pthread, uint64_t noted);

/* Whether one that was to be stopped since the last call did not stop in time: it is traced until the caller ends. */
bool native_ids_stuck(struct native_ids *ids);

#endif
