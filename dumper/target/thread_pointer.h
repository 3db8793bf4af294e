/*
 * Finds the thread pointer of a native thread that is not stopped. The kernel gives a thread's registers only if the
 * thread is stopped. But glibc tells the kernel the address of each thread's robust list (a list of futexes), and
 * get_robust_list(2) returns this address even if the thread runs. The head of the robust list is in the thread's
 * struct pthread, and the thread pointer is the address of the struct pthread.
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
 * Returns the thread pointer of a thread of a live process: the value for `fs_base` in struct native_thread. Searches
 * the 2 KiB before the robust list for the beginning of a struct pthread. Returns 0 if the thread has no robust list,
 * or if the search does not find exactly one struct pthread.
 */
uint64_t thread_pointer(struct target *target, pid_t tid);

#endif
