/*
 * Ractors and threads: lists the threads, with the state of each thread. Based on Ruby's sources, 1.9.3 to 4.0.0:
 * vm_core.h, ractor_core.h, thread.c (sleep_forever, sleep_hrtime, blocking_region_begin), thread_pthread.{c,h},
 * ccan/list/list.h.
 */
#ifndef RBDUMP_THREADS_H
#define RBDUMP_THREADS_H

#include "ruby/ruby.h"
#include "trace/trace.h"

struct ruby_thread {
	uint64_t address;	 /* rb_thread_t */
	uint64_t ec;		 /* the thread's execution context; 0 if it cannot be read */
	uint64_t ractor;	 /* number of the thread's ractor; 1 if this Ruby has no ractors (up to 2.7) */
	uint64_t name;		 /* VALUE of the name, or nil; 0 if this Ruby has no thread names */
	uint64_t pthread;	 /* pthread_t; 0 if not known */
	uint64_t tid;		 /* tid that Ruby has stored (wrong after a fork in 3.1 and 3.2); 0 if not known */
	uint64_t fiber;		 /* rb_fiber_t that the thread runs; 0 if not known */
	uint64_t resumed_by;	 /* rb_fiber_t that has resumed `fiber`; 0 if there is none, or if not known */
	const char *fiber_state; /* "created", "resumed", "suspended", "terminated"; NULL if not known */
	bool main;
	enum trace_state state;
};

struct ruby_threads {
	struct ruby_thread *threads;
	size_t count;
	enum list_missing missing; /* LIST_COMPLETE, LIST_BROKEN, LIST_TOO_LONG or LIST_OUT_OF_TIME */
};

/* The maximum number of threads in a list. */
#define THREADS_MAX 16384u

/*
 * Lists the threads of all ractors, each thread once. Stops after THREADS_MAX threads, or if the time limit is reached
 * (see memory_limit()). Returns false if there is not enough memory. Otherwise the caller frees `ret` with
 * threads_clear().
 */
bool threads_list(const struct ruby *ruby, struct ruby_threads *ret);
void threads_clear(struct ruby_threads *threads);

/*
 * Reads the current state of one thread. Does not find out three facts: which ractor the thread belongs to, whether the
 * thread is the main thread, and whether the thread has a GVL. Only threads_list() finds out these three facts. The
 * state is STATE_UNKNOWN if the thread is able to run, and is not in the queue for a GVL. In Rubies without such a
 * queue (up to 2.5), the state is also STATE_UNKNOWN if the thread waits for a GVL.
 */
struct ruby_thread threads_read_one(const struct ruby *ruby, uint64_t address);

/*
 * The number of a thread's ractor; 1 if this Ruby has no ractors. Returns 0 if the number cannot be read, or if there
 * is no thread at `address`. Since Ruby 2.5, the function assumes that there is a thread if the struct at `address` and
 * an execution context point at each other. Up to Ruby 2.4, the function does not check this.
 */
uint64_t threads_ractor(const struct ruby *ruby, uint64_t address);

/*
 * The state of a thread that is not running. The state depends on three facts: the thread's status, whether the thread
 * is in a blocking region, and whether the thread is in the queue for a GVL. The state is STATE_UNKNOWN if, according
 * to these facts, the thread is able to run.
 */
enum trace_state threads_state_of(const struct layout *layout, uint64_t status, bool blocking, bool queued);

/* Whether two lists have the same threads in the same order, and the same value of `missing`. */
bool threads_are_same(const struct ruby_threads *a, const struct ruby_threads *b);

/*
 * Whether the garbage collector is running. `known` receives false if rbdump cannot find this out. In that case, the
 * result is false, too.
 */
bool threads_gc_running(const struct ruby *ruby, bool *known);

#endif
