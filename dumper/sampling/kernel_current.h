/*
 * Finds the word in which a native thread notes which Ruby thread it runs. This word is in thread-local storage. In
 * Ruby 3.0 and later, the word is the variable ruby_current_ec (vm.c). In older versions, the word is the
 * thread-specific data of the key native_tls_key (thread_pthread.c). In all native threads, the word is at the same
 * distance from the thread pointer, unless the C library allocates the word elsewhere. rbdump does not need a symbol to
 * find this distance: it searches the memory around the thread pointers of the threads that it knows. If the program in
 * the kernel (kernel/programs.h) knows the distance, the program recognizes a new thread at once.
 */
#ifndef RBDUMP_KERNEL_CURRENT_H
#define RBDUMP_KERNEL_CURRENT_H

#include "kernel/record.h"
#include "session/session.h"

/*
 * Sets the members `where_current`, `current`, `ec_thread` and `main` of `facts`. A word qualifies only if, in the main
 * thread, it contains the address of the main thread's execution context or rb_thread_t. If several words qualify,
 * chooses the word that leads to the right Ruby thread in the largest number of native threads. If no word qualifies,
 * sets `where_current` to KERNEL_NO_CURRENT. In this case, the program in the kernel knows a new thread only after
 * rbdump has read the list of threads. When the program finds a Ruby thread by the word, the program compares the
 * pthread_t of this Ruby thread with the thread pointer. So a wrong word cannot lead to a wrong thread.
 */
void kernel_current_find(const struct session *session, struct kernel_facts *facts);

#endif
