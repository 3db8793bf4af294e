/*
 * Starts threads. In each process of rbdump, only the main thread handles signals; all other threads block signals.
 */
#ifndef RBDUMP_THREAD_H
#define RBDUMP_THREAD_H

#include <pthread.h>

#include "base/error.h"

/* Starts a thread that blocks all signals and calls run(context). Fails if the system cannot start a thread. */
struct error *thread_start(pthread_t *ret, void *(*run)(void *context), void *context);

#endif
