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
	struct ruby_thread thread; /* the thread as it was last read */
	uint64_t collections;	   /* how many garbage collections had begun when the thread was read; 0: not known */
	struct subject subject;
	struct time_line line;
	/* when rbdump began to follow the thread; earlier records with the same tid belong to another thread */
	uint64_t since_ns;
	uint32_t wait_slot; /* the slot with the stack of the wait that began at `wait_ns`; TIME_NONE: no such stack */
	uint64_t wait_ns;
	uint32_t lost; /* `lost` of struct kernel_head, from the last record that was taken for the thread */
	/*
	 * for each way to leave a CPU: how often the thread left its CPU in this way since the last call of
	 * kernel_threads_choose_waits()
	 */
	unsigned int outs[KERNEL_LEAVES];
	double means[KERNEL_LEAVES]; /* how often per second, averaged over the last `rated_s` seconds */
	double rated_s;
	double rates[KERNEL_LEAVES];   /* the same, or how often since the last call if that is more */
	double chances[KERNEL_LEAVES]; /* as in kernel_maps_set_chances() */
	bool listed;		       /* the thread was in the list of threads when the list was last read */
	bool taken;		       /* a record of the thread was taken */
	uint64_t gone_ns; /* when rbdump first read a list of threads without this thread; 0: no such list */
	/* the thread and its time line have ended, but the last pieces of the time line may not have been taken yet */
	bool ended;
};

struct kernel_threads {
	const struct session *session;
	struct kernel_maps maps; /* set by the caller, before the list is read for the first time */
	struct time_slots *slots;
	struct memory *memory; /* the snapshot that the list of threads is read from */
	struct ruby ruby;
	struct kernel_follow *of;
	size_t count, capacity;
	uint64_t main;	      /* the rb_thread_t of the main thread; 0: not known */
	uint64_t listed_ns;   /* when the list of threads was last read, by CLOCK_MONOTONIC */
	uint64_t rest_ns;     /* how long after `listed_ns` the list is read again, unless `wanted_ns` is earlier */
	uint64_t collections; /* how many garbage collections had begun when the list was read; 0: not known */
	/*
	 * The tid of a thread that has run but has no entry in the array `of`. To find this thread, rbdump reads the
	 * list of threads again at `wanted_ns`. If `wanted_ns` is 0, rbdump does not search for a thread.
	 */
	pid_t wanted;
	uint64_t wanted_ns;
	unsigned int tries; /* how many times the list was read to find `wanted` */
};

/* `session` and `slots` must outlive `threads`. Returns false if there is not enough memory. */
bool kernel_threads_init(struct kernel_threads *threads, const struct session *session, struct time_slots *slots);
void kernel_threads_clear(struct kernel_threads *threads);

/*
 * Reads the list of threads, begins to follow new threads, and notes which threads have ended. Does nothing if the last
 * list is less than four seconds old and rbdump is not searching for a thread (see `wanted`). If the list cannot be
 * read because Ruby is changing it, `threads` keeps its entries, and the list is read again soon, in a later call. This
 * call can move the entries in memory, so pointers to entries are no longer valid after the call.
 */
void kernel_threads_keep(struct kernel_threads *threads, uint64_t now_ns);

/*
 * Forgets the threads that have ended. Call this function after the pieces of these threads' time lines have been
 * taken. This call can move the entries in memory, so pointers to entries are no longer valid after the call.
 */
void kernel_threads_sweep(struct kernel_threads *threads);

/*
 * If records were lost, call this function before you take pieces of time lines. For each thread, checks whether any
 * of its records were lost after the last record that was taken for this thread. If so, extends the thread's time line
 * to `until_ns`, and marks the added time as lost.
 *   until_ns  a time by CLOCK_MONOTONIC; all records before this time must have been taken
 *   is_now    true if `until_ns` is the current time. In this case, also corrects the current state of each thread
 *             whose records were lost
 */
void kernel_threads_lose(struct kernel_threads *threads, uint64_t until_ns, bool is_now);

/*
 * Notes that a thread without an entry has run. After this, kernel_threads_keep() reads the list of threads again, as soon
 * as its `now_ns` is not earlier than the time when this function was called.
 */
void kernel_threads_want(struct kernel_threads *threads, pid_t tid);

/*
 * Notes that a thread has ended, and extends the thread's time line to `time_ns`. The native thread of the ended thread
 * may continue, and run another Ruby thread. So this function makes the program in the kernel forget which Ruby thread
 * the native thread runs, unless the program already knows that the native thread runs another Ruby thread. If the
 * native thread runs again, the program finds its Ruby thread itself, or reports an unknown thread to rbdump.
 */
void kernel_threads_end(struct kernel_threads *threads, struct kernel_follow *follow, uint64_t time_ns);

/*
 * Finds the thread that has the id `tid`, that has not ended, and that rbdump was already following at `time_ns`.
 * Returns NULL if there is no such thread.
 *   address  the address of the thread's rb_thread_t; 0: any address
 */
struct kernel_follow *kernel_threads_find(const struct kernel_threads *threads, pid_t tid, uint64_t address,
					  uint64_t time_ns);

/*
 * Begins to follow a thread that the program in the kernel has found. The time line of the thread begins at `time_ns`.
 * If the thread already has an entry because it was in the list of threads, but no record of the thread was taken yet,
 * changes the beginning of its time line to `time_ns`. In both cases, if an earlier thread with the same tid has a time
 * line that ends after `time_ns`, the time line of the new thread begins at that end instead. Returns NULL if a record
 * of the thread was already taken, if rbdump was already following the thread at `time_ns`, or if there is not enough
 * memory. This call can move the entries in memory, so pointers to entries are no longer valid after the call.
 *   time_ns  when a record of the thread was written. At that time, the thread was on a CPU
 *   reads    whether to read the thread's data, such as its name, from the target now. If false, rbdump gets this data
 *            when it next reads the list of threads
 */
struct kernel_follow *kernel_threads_found(struct kernel_threads *threads, pid_t tid, uint64_t address,
					   uint64_t time_ns, bool reads);

/*
 * Ends the time lines of the threads that were not in the last list of threads. Does nothing for a thread if the first
 * list without this thread was read after `until_ns`, because the last records of the thread may not have been taken
 * yet.
 *   until_ns  all records before this time must have been taken
 */
void kernel_threads_end_gone(struct kernel_threads *threads, uint64_t until_ns);

/* Opens a thread's files in /proc if they are not open yet. rbdump needs these files to read the thread's state. */
void kernel_threads_open(const struct kernel_threads *threads, struct kernel_follow *follow);

/*
 * For each thread, chooses the probability that the program in the kernel copies the thread's stack when the thread
 * begins to wait. The more often threads have begun to wait in the last seconds, the lower the probability is.
 *   rate     the number of clock samples per second. For each way to leave a CPU (KERNEL_LEAVES), at most about this
 *            number of stacks is copied per second. But for each thread and each way, about four stacks per second are
 *            allowed, even if the total is then larger than `rate`
 *   seconds  the time since the last call of this function
 */
void kernel_threads_choose_waits(struct kernel_threads *threads, double rate, double seconds);

#endif
