/*
 * Derives the state of a thread from what Ruby and the kernel say about the thread. Recordings show this state.
 */
#ifndef RBDUMP_THREAD_STATE_H
#define RBDUMP_THREAD_STATE_H

#include "check/sample_state.h"
#include "target/task.h"
#include "trace/trace.h"

/*
 *   state       what Ruby says about the thread
 *   look        what the kernel says about the thread; `look->known` is false if the Ruby thread has no native thread
 *   collecting  whether Ruby is running its garbage collector
 */
enum sample_state thread_state(enum trace_state state, const struct task_look *look, bool collecting);

#endif
