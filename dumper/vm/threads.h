/*
 * Ractors and threads: which stacks there are, and what each thread is about. Facts: vm_core.h, ractor_core.h, thread.c
 * (sleep_forever, sleep_hrtime, blocking_region_begin), thread_pthread.{c,h}, ccan/list/list.h, 1.9.3 to 4.0.0.
 */
#ifndef RBDUMP_THREADS_H
#define RBDUMP_THREADS_H

#include "trace/trace.h"
#include "vm/ruby.h"

struct ruby_thread {
	uint64_t address;	 /* rb_thread_t */
	uint64_t ec;		 /* 0 if it cannot be read */
	uint64_t ractor;	 /* number; 1 where there are none (until 2.7) */
	uint64_t name;		 /* VALUE; 0 if this Ruby has none */
	uint64_t pthread;	 /* pthread_t; 0 if not known */
	uint64_t tid;		 /* as Ruby has noted it; 0 if not known. Wrong after a fork in 3.1 and 3.2 */
	uint64_t fiber;		 /* rb_fiber_t that it runs; 0 if not known */
	uint64_t resumed_by;	 /* rb_fiber_t that has resumed that one; 0 if none has, or it is not known */
	const char *fiber_state; /* "created", "resumed", "suspended", "terminated"; NULL if not known */
	bool main;
	enum trace_state state;
};

struct ruby_threads {
	struct ruby_thread *threads;
	size_t count;
	enum list_missing missing; /* whether these are all; never for lack of knowledge, or LIST_MISSED */
};

/* The most threads that are listed. */
#define THREADS_MAX 16384u

/*
 * Lists the threads of all ractors, each once; if they are too many, or there is no time left to read (memory_limit()),
 * as many as there is room or time for. Returns false if out of memory; otherwise `ret` is to be given to
 * threads_clear().
 */
bool threads_list(const struct ruby *ruby, struct ruby_threads *ret);
void threads_clear(struct ruby_threads *threads);

/* Reads a thread as it is, alone: all of it that no list tells, which are its ractor, and whether it has a GVL. */
struct ruby_thread threads_read_one(const struct ruby *ruby, uint64_t address);

/* Whether two lists have the same threads, in the same order, and the same to say of those that may be missing. */
bool threads_are_same(const struct ruby_threads *a, const struct ruby_threads *b);

/* Whether the garbage collector is running; false if this cannot be known. */
bool threads_gc_running(const struct ruby *ruby, bool *known);

#endif
