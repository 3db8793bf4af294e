/*
 * Finds the native thread on which a Ruby thread of a live process runs. Native threads may start and end at any time.
 * The process may be in another pid namespace than rbdump.
 *
 * For each of its threads, Ruby stores a pthread_t. Since Ruby 3.1, Ruby also stores a tid. The tid is an id in the
 * process's own pid namespace. After a fork, the stored tid can still be the tid that the thread had in the parent
 * process. The pthread_t is the thread pointer of a native thread (fs_base on x86-64). The kernel gives the thread
 * pointer of a thread only if the thread is stopped. But glibc registers a robust list (of robust futexes) with the
 * kernel for each thread, and the head of this list is in the thread's struct pthread. The system call
 * get_robust_list(2) gives the address of the list without stopping the thread. The distance from the pthread_t to the
 * list is the same for all threads. rbdump learns this distance from threads whose thread pointer is known. With musl,
 * threads have no robust lists. For such threads, the tid that Ruby stores is compared with each thread's id in the
 * process's own pid namespace (NSpid of /proc/PID/task/TID/status). If no thread has that tid, rbdump stops threads
 * whose thread pointer is not known, one after the other, and reads their thread pointers. Each thread is stopped at
 * most once for this.
 *
 * Two threads of a process never have the same list address at the same time. The reason is the order of events when a
 * thread ends. First, the kernel forgets the robust list of the thread. Then the kernel reports the end of the thread,
 * and glibc can reuse the struct pthread only after this report (kernel/fork.c, mm_release(), v6.1).
 */
#ifndef RBDUMP_NATIVE_IDS_H
#define RBDUMP_NATIVE_IDS_H

#include "target/target.h"

struct native_ids;

/*
 * At first, the returned object contains the thread pointers that are known from the last stop of the target. The
 * target must outlive the returned object. Returns NULL if out of memory.
 */
struct native_ids *native_ids_create(const struct target *target);
void native_ids_destroy(struct native_ids *ids); /* NULL is fine */

/*
 * Finds the native thread that has a given pthread_t at the moment. Returns the thread's tid in rbdump's own pid
 * namespace; 0 if the thread is not known. Before the caller uses the tid, the thread might end, and another thread
 * might get the same tid. A caller that has stopped a thread with this tid can compare the thread pointer of the
 * stopped thread with `pthread`. If the two differ, the stopped thread is another thread. This function may stop
 * threads for a moment, so the calling thread must follow the rules of target/tracee.h.
 *   pthread  the pthread_t; 0 if it is not known
 *   noted    the tid that Ruby stores; 0 if Ruby stores no tid
 */
pid_t native_ids_find(struct native_ids *ids, uint64_t pthread, uint64_t noted);

/*
 * Whether native_ids_find() has failed to stop a thread in time since the last call of native_ids_stuck(). Such a
 * thread stays traced until the rbdump thread that called native_ids_find() ends.
 */
bool native_ids_stuck(struct native_ids *ids);

#endif
