/*
 * Compares threads and stacks, of one trace or of two traces of the same process. Whatever a trace shows of a stack must be
 * compared here: stacks that are the same are shown only once (render/fold.h), and a thread whose stack is the same has not
 * moved (trace/progress.h).
 */
#ifndef RBDUMP_SAME_H
#define RBDUMP_SAME_H

#include "trace/trace.h"

/* Whether both texts are the same, or both are NULL. */
bool trace_same_text(const char *a, const char *b);

/*
 * Whether both are the same thread, or the same suspended fiber, in two looks at one process: Ruby's struct is at the same
 * address, and the tids are the same, as far as both are known. If a thread ends, and another thread gets its memory and its
 * native thread (Ruby up to 3.2 keeps native threads for later threads: thread_pthread.c, use_cached_thread(), v2_7_0), both
 * are taken for the same thread.
 */
bool trace_same_thread(const struct trace_thread *a, const struct trace_thread *b);

/* A number that is the same for two threads or fibers for which trace_same_thread() is true. */
uint64_t trace_thread_key(const struct trace_thread *thread);

/* Whether both stacks have the same verdict and the same frames: kinds, labels, names, paths and lines. */
bool trace_same_stack(const struct trace_thread *a, const struct trace_thread *b);

/* How many of the outermost frames are the same in both stacks. Compares at most `most` frames. */
size_t trace_same_outer_frames(const struct trace_thread *a, const struct trace_thread *b, size_t most);

/*
 * Whether a thread waits for the same and holds the same in two looks at one process: the same objects, held by the same
 * threads or fibers, which have locked them at the same place. The number of threads and fibers that wait for an object, and
 * the number of elements of a queue, are not compared.
 *   i, k  the thread's indexes in a->threads and b->threads; its stack is the same in both
 */
bool trace_same_waits(const struct trace *a, size_t i, const struct trace *b, size_t k);

/* Whether both are in the same system call, with the same arguments and the same descriptors, or both are in none. */
bool trace_same_call(const struct trace_thread *a, const struct trace_thread *b);

/* A hash of the stack, the same for stacks for which trace_same_stack() is true. */
uint64_t trace_stack_hash(const struct trace_thread *thread);

#endif
