/*
 * Finds out where a native thread notes which Ruby thread it runs. Ruby keeps this in thread-local storage: since 3.0
 * in the variable ruby_current_ec (vm.c), before that as thread-specific data of the key native_tls_key
 * (thread_pthread.c). In both cases, the word is at the same distance from the thread pointer in all native threads,
 * unless the C library allocates it elsewhere. No symbol is needed: rbdump looks for this distance in the memory of the
 * threads that it knows. With the word, the program in the kernel knows a new thread at once.
 */
#ifndef RBDUMP_KERNEL_CURRENT_H
#define RBDUMP_KERNEL_CURRENT_H

#include "kernel/record.h"
#include "session/session.h"

/*
 * Sets `where_current`, `current`, `ec_thread` and `main`. A word is considered only if it leads to the right Ruby
 * thread in the main thread. Of several such words, the word that is right in the most threads is taken. If there is no
 * such word, sets `where_current` to KERNEL_NO_CURRENT. Then the program knows a new thread only after the list of
 * threads was read. The program checks the word with the pthread_t, so a wrong word cannot lead to a wrong thread.
 */
void kernel_current_find(const struct session *session, struct kernel_facts *facts);

#endif
