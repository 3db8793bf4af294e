/*
 * The thread pointer of a native thread that is not stopped. Registers are told of stopped threads only; but a thread
 * of glibc has registered its list of robust futexes with the kernel, whose head lies in the thread's struct pthread,
 * and that is where the thread pointer points.
 */
#ifndef RBDUMP_THREAD_POINTER_H
#define RBDUMP_THREAD_POINTER_H

#include "target/target.h"

/* Where the list of robust futexes of a thread is, by get_robust_list(2); 0: it has none (musl), or has ended. */
uint64_t thread_robust_list(pid_t tid);

/*
 * The thread pointer of a thread of a live process, as it would be with the registers (struct native_thread); 0 if it
 * has no such list, or what is before the list is no struct pthread.
 */
uint64_t thread_pointer(struct target *target, pid_t tid);

#endif
