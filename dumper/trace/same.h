/*
 * Compares threads and stacks from one trace, or from two traces of the same process. Everything that a trace shows
 * about a stack must be compared here. Otherwise, rbdump would show two stacks as one although they differ
 * (render/fold.h), or would say that a thread has not moved although its stack has changed (trace/progress.h).
 */
#ifndef RBDUMP_SAME_H
#define RBDUMP_SAME_H

#include "trace/trace.h"

/* Whether both texts are the same, or both are NULL. */
bool trace_same_text(const char *a, const char *b);

/*
 * Whether both are the same thread, or the same suspended fiber, in two looks at one process. True if Ruby's struct is at
 * the same address, and the tids are equal (or one of them is not known). If a thread has ended, another thread can get
 * its memory and its native thread (Ruby up to 3.2 keeps native threads for later threads: thread_pthread.c,
 * use_cached_thread(), v2_7_0). In this case, the result is true, although the threads are different.
 */
bool trace_same_thread(const struct trace_thread *a, const struct trace_thread *b);

/* A key for a thread or fiber. If trace_same_thread() is true for two threads or fibers, they have the same key. */
uint64_t trace_thread_key(const struct trace_thread *thread);

/* Whether both stacks have the same verdict and the same frames: kinds, labels, names, paths and lines. */
bool trace_same_stack(const struct trace_thread *a, const struct trace_thread *b);

/* How many of the outermost frames are the same in both stacks. Compares at most `most` frames. */
size_t trace_same_outer_frames(const struct trace_thread *a, const struct trace_thread *b, size_t most);

/*
 * Whether a thread waits for the same object, and holds the same objects, in two looks at one process. Also compares which
 * thread or fiber holds the object that the thread waits for, and at which place the holder has locked it. Does not compare
 * how many elements a queue has, or how many threads and fibers wait for an object. But for an object that the thread
 * holds, compares whether any thread or fiber waits for it at all.
 *   i, k  the thread's indexes in a->threads and b->threads; the thread's stack must be the same in both traces
 */
bool trace_same_waits(const struct trace *a, size_t i, const struct trace *b, size_t k);

/* Whether both threads are in the same system call, with the same arguments and descriptors, or neither is in one. */
bool trace_same_call(const struct trace_thread *a, const struct trace_thread *b);

/* A hash of the stack. If trace_same_stack() is true for two stacks, they have the same hash. */
uint64_t trace_stack_hash(const struct trace_thread *thread);

#endif
