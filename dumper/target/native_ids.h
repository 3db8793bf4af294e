/*
 * Finds the native thread that runs a given Ruby thread of a live process. Native threads may start and end at any
 * time. The process and rbdump may be in different pid namespaces.
 *
 * For each of its threads, Ruby stores a pthread_t. Since Ruby 3.1, Ruby also stores a tid. The tid is an id in the
 * process's own pid namespace. After a fork, the stored tid can still be the tid that the thread had in the parent
 * process. The pthread_t is the thread pointer of a native thread (fs_base on x86-64). The kernel gives the thread
 * pointer of a thread only if the thread is stopped. But for each thread, glibc tells the kernel the address of the
 * thread's robust list (a list of robust futexes). The head of this list is in the thread's struct pthread. The system
 * call get_robust_list(2) gives the address of the list without stopping the thread. The distance from the pthread_t to
 * the robust list is the same for all threads. rbdump learns this distance from threads whose thread pointer is known.
 * With musl, threads usually have no robust lists. So for musl, rbdump takes the tid that Ruby stores, and looks for the
 * thread that has this tid in the process's own pid namespace (NSpid in /proc/PID/task/TID/status). If no thread has that
 * tid, rbdump stops the threads with unknown thread pointers, one after the other. rbdump stops each of these threads
 * only once, to read the thread pointer.
 *
 * At any time, the robust lists of two threads of a process have different addresses. The reason is the order of events
 * when a thread ends. First, the kernel forgets the address of the thread's robust list. Then the kernel reports the
 * end of the thread. Before this report, glibc does not reuse the struct pthread (kernel/fork.c, mm_release(), v6.1).
 */
#ifndef RBDUMP_NATIVE_IDS_H
#define RBDUMP_NATIVE_IDS_H

#include "target/target.h"

struct native_ids;

/*
 * Creates an object for native_ids_find(). At first, the object contains the thread pointers that are known from the
 * last stop of the target. The target must outlive this object. Returns NULL if there is not enough memory.
 */
struct native_ids *native_ids_create(const struct target *target);
void native_ids_destroy(struct native_ids *ids); /* NULL is fine */

/*
 * Finds the native thread that currently has a given pthread_t. Returns the thread's tid in rbdump's own pid namespace.
 * Returns 0 if rbdump cannot find the thread. Before the caller uses the tid, the thread might end, and another thread
 * might get the same tid. A caller that has stopped a thread with this tid can compare the thread pointer of the
 * stopped thread with `pthread`. If the two values differ, the caller has stopped a different thread than the thread
 * that native_ids_find() found. This function may stop threads for a moment, so the calling thread must follow the
 * rules of target/tracee.h.
 *   pthread  the pthread_t; 0 if it is not known
 *   noted    the tid that Ruby stores; 0 if Ruby stores no tid
 */
pid_t native_ids_find(struct native_ids *ids, uint64_t pthread, uint64_t noted);

/*
 * Whether native_ids_find() has tried to stop a thread that did not stop in time. Considers only the calls to
 * native_ids_find() since the last call to native_ids_stuck(). A thread that did not stop in time stays traced until
 * the end of the rbdump thread that called native_ids_find().
 */
bool native_ids_stuck(struct native_ids *ids);

#endif
