/*
 * The threads of a Ruby process that is sampled in the kernel (kernel_stream.h). The program in the kernel is told of
 * each thread, and each thread has a time line.
 */
#ifndef RBDUMP_KERNEL_THREADS_H
#define RBDUMP_KERNEL_THREADS_H

#include "kernel/programs.h"
#include "ruby/threads.h"
#include "sampling/sample.h"
#include "sampling/time_line.h"

/* A thread. */
struct kernel_follow {
	struct ruby_thread thread; /* as it was when it was first listed; only the name is kept up to date */
	struct subject subject;
	struct time_line line;
	uint64_t since_ns;  /* since when the thread is followed: earlier records are of another thread */
	uint32_t wait_slot; /* the stack of the wait that began at `wait_ns`; TIME_NONE: it was not copied */
	uint64_t wait_ns;
	unsigned int outs; /* how many waits began since the last flush */
	double chance;	   /* as in kernel_programs_set_chance() */
	bool listed;	   /* it was in the last list */
	bool ended;	   /* the thread has ended, and so has its time line; its last pieces may not be taken yet */
};

struct kernel_threads {
	const struct session *session;
	struct kernel_programs *programs; /* set by the caller, before the first list */
	struct time_slots *slots;
	struct memory *memory; /* the snapshot through which lists are read */
	struct ruby ruby;
	struct kernel_follow *of;
	size_t count, capacity;
	uint64_t listed_ns;   /* when the list was read last, by CLOCK_MONOTONIC */
	uint64_t collections; /* how many collections had begun then; 0: not known */
	/*
	 * A thread that ran and is not known. The list is read again at `wanted_ns`; if that is 0, there is no such
	 * thread.
	 */
	pid_t wanted;
	uint64_t wanted_ns;
	unsigned int tries; /* how often the list was read because of `wanted` */
};

/* The session and the slots must outlive the list. Returns false if out of memory. */
bool kernel_threads_init(struct kernel_threads *threads, const struct session *session, struct time_slots *slots);
void kernel_threads_clear(struct kernel_threads *threads);

/*
 * Reads the list of threads once per second, and when a thread ran that is not known; otherwise does nothing. Follows
 * new threads, and notes which threads have ended. Moves entries in memory. If the list cannot be read because it is
 * being changed, `threads` keeps its entries.
 */
void kernel_threads_keep(struct kernel_threads *threads, uint64_t now_ns);

/* Forgets the threads that have ended. Call this function after their pieces were taken. Moves entries in memory. */
void kernel_threads_sweep(struct kernel_threads *threads);

/*
 * Looks at what all threads do, and corrects their time lines. Call this function after records were lost.
 *   now_ns  by CLOCK_MONOTONIC
 */
void kernel_threads_correct(struct kernel_threads *threads, uint64_t now_ns);

/* Notes that a thread ran that is not known. */
void kernel_threads_want(struct kernel_threads *threads, pid_t tid);

/*
 * Notes that a thread has ended, and extends its time line to `time_ns`. Its native thread may go on with another Ruby
 * thread. So the program in the kernel forgets the native thread, and reports it as not known if it runs again.
 */
void kernel_threads_end(struct kernel_threads *threads, struct kernel_follow *follow, uint64_t time_ns);

/* The thread with this tid that was followed at `time_ns`, and has not ended; NULL if there is none. */
struct kernel_follow *kernel_threads_find(const struct kernel_threads *threads, pid_t tid, uint64_t time_ns);

#endif
