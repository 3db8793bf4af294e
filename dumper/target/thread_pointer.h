/*
 * Finds the thread pointer of a native thread that is not stopped. The kernel gives a thread's registers only if the
 * thread is stopped. But the kernel also knows the robust list of each thread (a list of futexes), because glibc
 * passes its address to the kernel. The thread pointer points to the thread's struct pthread, which contains the head
 * of that list.
 */
#ifndef RBDUMP_THREAD_POINTER_H
#define RBDUMP_THREAD_POINTER_H

#include "target/target.h"

/*
 * Returns the address of a thread's robust list, as get_robust_list(2) gives it. Returns 0 if the thread has no robust
 * list (musl) or has ended, or if the kernel refuses.
 */
uint64_t thread_robust_list(pid_t tid);

/*
 * Returns the thread pointer of a thread of a live process: the value for `fs_base` in struct native_thread. Returns 0
 * if the thread has no robust list. Also returns 0 if no struct pthread, or more than one, is found shortly before the
 * robust list.
 */
uint64_t thread_pointer(struct target *target, pid_t tid);

#endif
