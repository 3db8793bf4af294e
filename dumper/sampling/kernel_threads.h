/*
 * The threads of a Ruby process that is sampled in the kernel (kernel_stream.h). This module tells the program in the
 * kernel which threads exist, and keeps a time line for each thread.
 */
#ifndef RBDUMP_KERNEL_THREADS_H
#define RBDUMP_KERNEL_THREADS_H

#include "kernel/maps.h"
#include "ruby/threads.h"
#include "sampling/sample.h"
#include "sampling/time_line.h"

/* A thread. */
struct kernel_follow {
	/* the thread as the list of threads first described it; later, only the name is updated */
	struct ruby_thread thread;
	struct subject subject;
	struct time_line line;
	/* when rbdump began to follow the thread; earlier records with the same tid belong to another thread */
	uint64_t since_ns;
	uint32_t wait_slot; /* the stack of the wait that began at `wait_ns`; TIME_NONE: this stack was not copied */
	uint64_t wait_ns;
	uint32_t lost;	   /* the `lost` (struct kernel_head) of the last record that was taken for this thread */
	unsigned int outs; /* how many waits began since the last kernel_threads_choose_waits() */
	double chance;	   /* as in kernel_maps_set_chance() */
	bool listed;	   /* the thread was in the list of threads that was read last */
	/* the thread and its time line have ended; the last pieces of the time line may not have been taken yet */
	bool ended;
};

struct kernel_threads {
	const struct session *session;
	struct kernel_maps maps; /* set by the caller, before the list is read for the first time */
	struct time_slots *slots;
	struct memory *memory; /* the snapshot from which the list of threads is read */
	struct ruby ruby;
	struct kernel_follow *of;
	size_t count, capacity;
	uint64_t listed_ns;   /* when the list of threads was read last, by CLOCK_MONOTONIC */
	uint64_t collections; /* how many garbage collections had begun when the list was read; 0: not known */
	/*
	 * The tid of a thread that has run, but has no entry. The list of threads is read again at `wanted_ns`. If
	 * `wanted_ns` is 0, rbdump does not search for such a thread.
	 */
	pid_t wanted;
	uint64_t wanted_ns;
	unsigned int tries; /* how many times the list was read because of `wanted` */
};

/* `session` and `slots` must outlive `threads`. Returns false if out of memory. */
bool kernel_threads_init(struct kernel_threads *threads, const struct session *session, struct time_slots *slots);
void kernel_threads_clear(struct kernel_threads *threads);

/*
 * Reads the list of threads if the last list is at least one second old, or if a thread without an entry has run.
 * Otherwise does nothing. Begins to follow new threads, and notes which threads have ended. This call can move entries
 * in memory, so pointers to entries become invalid. If the list cannot be read because the target is changing the list,
 * `threads` keeps its entries.
 */
void kernel_threads_keep(struct kernel_threads *threads, uint64_t now_ns);

/*
 * Forgets the threads that have ended. Call this function after the pieces of their time lines were taken. This call
 * can move entries in memory, so pointers to entries become invalid.
 */
void kernel_threads_sweep(struct kernel_threads *threads);

/*
 * If records were lost, call this function before pieces of time lines are taken. For each thread of which records were
 * lost since the last record that was taken, marks the time from that record to `until_ns`.
 *   until_ns  by CLOCK_MONOTONIC; all earlier records were taken
 *   is_now    `until_ns` is now: corrects what these threads do from then on
 */
void kernel_threads_lose(struct kernel_threads *threads, uint64_t until_ns, bool is_now);

/* Notes that a thread without an entry has run. The list of threads will then be read again. */
void kernel_threads_want(struct kernel_threads *threads, pid_t tid);

/*
 * Notes that a thread has ended, and extends its time line to `time_ns`. The native thread may go on to run another
 * Ruby thread. So the program in the kernel forgets the native thread. If the native thread runs again, the program
 * reports an unknown thread.
 */
void kernel_threads_end(struct kernel_threads *threads, struct kernel_follow *follow, uint64_t time_ns);

/*
 * Finds the thread that has this tid, that rbdump already followed at `time_ns`, and that has not ended. Returns NULL
 * if there is no such thread.
 */
struct kernel_follow *kernel_threads_find(const struct kernel_threads *threads, pid_t tid, uint64_t time_ns);

/*
 * Chooses with which probability the program in the kernel copies the stack of each thread when a wait of the thread
 * begins. The more waits begin, the lower the probability.
 *   rate     how many samples the clock causes per second; about as many stacks of waits are copied per second
 *   seconds  the time since the last call
 */
void kernel_threads_choose_waits(struct kernel_threads *threads, double rate, double seconds);

#endif
