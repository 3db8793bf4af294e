/*
 * Finds out which process and which Ruby thread a task belongs to. The process is identified by the ids of the task in
 * rbdump's pid namespace. Either rbdump tells the program the Ruby thread, or the program reads the Ruby thread from
 * the thread-local storage of the native thread. This header also defines the BPF maps that contain what the program knows
 * about processes and threads.
 *
 * The programs for the clock and for sched_process_exit examine only the current task of their CPU. The programs for
 * sched_switch also examine the next task of their CPU. The programs for sched_waking and sched_wakeup examine the task
 * that is woken. The functions known_thread(), current_thread() and identify() can examine only the current task,
 * because bpf_probe_read_user() reads the memory of the current task.
 */
#ifndef RBDUMP_THREADS_BPF_H
#define RBDUMP_THREADS_BPF_H

/* clang-format off */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>
/* clang-format on */

#include "kernel/record.h"
#include "kernel/task.bpf.h"

/* From the kernel's include/linux/sched.h, v5.15 to v6.18. */
#define TASK_DEAD 0x80

/* The flag of a task that is ending. The memory of such a task may already be gone. */
#define PF_EXITING 0x4

/*
 * A thread that the kernel has made for io_uring (include/linux/sched.h, v5.12 to v6.18). It has the memory, the thread
 * group and the thread pointer of the thread that uses io_uring, but it never runs Ruby.
 */
#define PF_IO_WORKER 0x10

/*
 * A native thread is unknown if the program does not know which Ruby thread it runs. The program reports unknown threads
 * to rbdump, and repeats each report as long as the thread is still unknown. The second report follows at least AGAIN_NS
 * after the first report. With each further report, this time doubles, up to AGAIN_NS << TIMES_MAX.
 *
 * If the program can find Ruby threads itself, hardly any unknown thread runs a Ruby thread. In this case, when the
 * program sees an unknown thread for the first time, it does not report the thread at once: it waits at least
 * AGAIN_NS << TIMES_FOUND. After each report, the time until the next report doubles, too, up to AGAIN_NS << TIMES_MAX.
 */
#define AGAIN_NS    10000000ull
#define TIMES_MAX   6
#define TIMES_FOUND 4

/*
 * The maximum number of records KERNEL_CLOCK that are written for a new thread because the thread is preempted. After the
 * clock has interrupted the thread for the first time, a preemption no longer causes such a record.
 */
#define EARLY_MAX 3

/* The level and the address of rbdump's own pid namespace. The program where() sets both variables. */
__u32 level = 0;
__u64 namespace = 0;

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/*
 * What the program knows about each process: the facts, the ring for the records, and the counts of lost records. The
 * key of these three maps is the pid in rbdump's pid namespace.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct kernel_facts);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct kernel_counts);
} counts SEC(".maps");

/* What the program knows about each native thread. The key is the tid in rbdump's pid namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct kernel_thread);
} threads SEC(".maps");

/*
 * The probabilities that the stack of a thread is copied when the thread leaves its CPU. The key is the tid in rbdump's
 * pid namespace. If a thread has no entry, its stack is copied each time.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct kernel_chances);
} chances SEC(".maps");

/*
 * Reads the id of a task in the pid namespace that is `at` levels below the initial pid namespace. Returns 0 on
 * success. The verifier of kernels before 6.2 refuses to add a variable to a pointer whose type it knows. Therefore,
 * this function reads the pointer `thread_pid` as a number.
 */
static __always_inline long read_id(struct task_struct *task, __u32 at, struct upid *ret)
{
	__u64 pid = 0;

	if (bpf_core_read(&pid, sizeof(pid), &task->thread_pid) || pid == 0)
		return -1;
	return bpf_probe_read_kernel(
	    ret, sizeof(*ret),
	    (void *)(pid + bpf_core_field_offset(struct pid, numbers) + (__u64)at * bpf_core_type_size(struct upid)));
}

/* Returns the id of a task in rbdump's pid namespace, or 0 if the task is not in this pid namespace. */
static __always_inline __u32 id_of(struct task_struct *task)
{
	struct pid *pid = task->thread_pid;
	struct upid number = {0};

	if (!pid || pid->level < level || read_id(task, level, &number) || (__u64)number.ns != namespace)
		return 0;
	return (__u32)number.nr;
}

struct ids {
	__u32 pid, tid;
};

/* Returns the pid and the tid that a task has in rbdump's pid namespace. An id is 0 if the task has no such id there. */
static __always_inline struct ids ids_of(struct task_struct *task)
{
	if (level == 0)
		return (struct ids){.pid = (__u32)task->tgid, .tid = (__u32)task->pid};
	return (struct ids){.pid = id_of(task->group_leader), .tid = id_of(task)};
}

/* Reports to rbdump that the program does not know which Ruby thread a native thread runs. */
static __always_inline void tell_unknown(const struct ids *ids, __u64 now_ns, void *ring)
{
	struct kernel_head head = {.time_ns = now_ns, .tid = ids->tid, .kind = KERNEL_UNKNOWN};

	bpf_ringbuf_output(ring, &head, sizeof(head), BPF_RB_FORCE_WAKEUP);
}

/*
 * Notes that a native thread is unknown (see AGAIN_NS). If the program cannot find Ruby threads itself, this function
 * also reports the native thread to rbdump. Otherwise, note_again() reports the native thread later, if the native
 * thread is still unknown then.
 */
static __always_inline void note_unknown(const struct ids *ids, const struct kernel_facts *facts, void *ring)
{
	const bool finds = facts->where_current != KERNEL_NO_CURRENT;
	const struct kernel_thread none = {.told_ns = bpf_ktime_get_ns(), .times = finds ? TIMES_FOUND : 0};

	if (bpf_map_update_elem(&threads, &ids->tid, &none, BPF_NOEXIST) == 0 && !finds)
		tell_unknown(ids, none.told_ns, ring);
}

/*
 * Reports an unknown native thread to rbdump, unless the last report was made too recently (see AGAIN_NS). The report
 * is repeated because a native thread without a Ruby thread may have been given a Ruby thread since the last report.
 */
static __always_inline void note_again(const struct ids *ids, struct kernel_thread *thread, void *ring)
{
	const __u64 now_ns = bpf_ktime_get_ns(), times = thread->times < TIMES_MAX ? thread->times : TIMES_MAX;

	if (now_ns - thread->told_ns < AGAIN_NS << times)
		return;
	thread->told_ns = now_ns;
	thread->times = times + 1;
	tell_unknown(ids, now_ns, ring);
}

enum identity { IS_ITS_THREAD, IS_ANOTHER, IS_UNREADABLE };

/*
 * Checks whether an rb_thread_t still belongs to a native thread. After a Ruby thread has ended, its native thread may
 * continue with another Ruby thread.
 */
static __always_inline enum identity identify(struct task_struct *task, const struct kernel_facts *facts, __u64 thread)
{
	__u64 in = thread, pthread = 0;

	if (facts->where_pthread == KERNEL_NOWHERE)
		return IS_ITS_THREAD;
	if (facts->where_pthread == KERNEL_IN_NATIVE &&
	    bpf_probe_read_user(&in, sizeof(in), (void *)(thread + facts->native)))
		return IS_UNREADABLE;
	if (in == 0)
		return IS_ANOTHER;
	if (bpf_probe_read_user(&pthread, sizeof(pthread), (void *)(in + facts->pthread)))
		return IS_UNREADABLE;
	return pthread == task->thread.fsbase ? IS_ITS_THREAD : IS_ANOTHER;
}

/*
 * Returns whether a Ruby thread has ended. The main thread never counts as ended, because its status is already that of
 * an ended thread while it waits for the other threads, and while it runs finalizers (eval.c, rb_ec_cleanup(), v2_7_0
 * to v4_0_5).
 *   word  the word at the offset `thread_words[0]` in the rb_thread_t (struct kernel_facts)
 */
static __always_inline bool has_ended(const struct kernel_facts *facts, __u64 thread, __u64 word)
{
	return thread != facts->main &&
	       (word >> (facts->status_shift & 63) & facts->status_mask) == facts->status_ended;
}

/* Counts a lost record of a thread. The next record about the thread contains the new count. */
static __always_inline void note_lost(struct kernel_thread *thread, __u64 *of_process)
{
	thread->lost++;
	__sync_fetch_and_add(of_process, 1);
}

/*
 * Finds out which Ruby thread the current native thread runs, by reading its thread-local storage. Returns the
 * rb_thread_t, or 0 if the Ruby thread is not known.
 *   ended  receives whether the Ruby thread has ended
 */
static __always_inline __u64 current_thread(struct task_struct *task, const struct kernel_facts *facts, bool *ended)
{
	__u64 thread = 0, status = 0;

	if (facts->where_current == KERNEL_NO_CURRENT || facts->where_pthread == KERNEL_NOWHERE)
		return 0;
	bpf_probe_read_user(&thread, sizeof(thread), (void *)(task->thread.fsbase + (__s64)facts->current));
	if (thread != 0 && facts->where_current == KERNEL_CURRENT_EC) {
		const __u64 ec = thread;

		thread = 0;
		bpf_probe_read_user(&thread, sizeof(thread), (void *)(ec + facts->ec_thread));
	}
	if (thread == 0 || identify(task, facts, thread) != IS_ITS_THREAD ||
	    bpf_probe_read_user(&status, sizeof(status), (void *)(thread + facts->thread_words[0])))
		return 0;
	*ended = has_ended(facts, thread, status);
	return thread;
}

/*
 * Reports to rbdump that a Ruby thread was given a CPU (KERNEL_IN), or that a Ruby thread has ended (KERNEL_OUT).
 * Returns false if the ring has no room.
 *   time_ns  when the Ruby thread was given the CPU, or ended
 */
static __always_inline bool tell(const struct ids *ids, __u32 kind, __u64 time_ns, __u64 thread, __u64 lost, void *ring)
{
	const struct kernel_switch record = {
	    .head = {.time_ns = time_ns, .tid = ids->tid, .kind = kind, .lost = (__u32)lost},
	    .thread = thread,
	    .task_state = kind == KERNEL_OUT ? TASK_DEAD : 0,
	    .syscall = -1,
	};

	return bpf_ringbuf_output(ring, (void *)&record, sizeof(record), BPF_RB_NO_WAKEUP) == 0;
}

/*
 * Reports to rbdump that the Ruby thread of a native thread has ended. The native thread may continue with another Ruby
 * thread.
 */
static __always_inline void tell_end(const struct ids *ids, struct kernel_thread *thread, struct kernel_counts *count,
				     void *ring)
{
	const __u64 now_ns = bpf_ktime_get_ns(), ended = thread->thread;

	/* When rbdump reads the record, the entry in `threads` must no longer contain the ended Ruby thread. */
	thread->ended = ended;
	thread->thread = 0;
	/* The time that the native thread has run until now belongs to the ended Ruby thread. */
	thread->in_ns = now_ns;
	if (!tell(ids, KERNEL_OUT, now_ns, ended, thread->lost, ring))
		note_lost(thread, &count->dropped);
}

/* Returns the time at which the current thread was given its CPU, or 0 if this time is not known. */
static __always_inline __u64 since(const struct kernel_facts *facts, const struct kernel_thread *thread)
{
	return thread && thread->in_ns >= facts->since_ns ? thread->in_ns : 0;
}

/*
 * Handles a Ruby thread that has begun and ended since its native thread was given a CPU. Reports to rbdump when this
 * Ruby thread was given the CPU, and that it has ended.
 */
static __always_inline void tell_short_life(const struct ids *ids, const struct kernel_facts *facts,
					    struct kernel_thread *thread, __u64 current, struct kernel_counts *count,
					    void *ring)
{
	const __u64 in_ns = since(facts, thread);

	if (in_ns == 0 || thread->ended == current)
		return;
	thread->ended = current;
	if (!tell(ids, KERNEL_IN, in_ns, current, 0, ring) ||
	    !tell(ids, KERNEL_OUT, bpf_ktime_get_ns(), current, 0, ring))
		note_lost(thread, &count->dropped);
}

/*
 * Notes which Ruby thread the current native thread runs, and reports the Ruby thread to rbdump. The Ruby thread counts
 * as running since the native thread was given its CPU. If that time is not known, the Ruby thread counts as running
 * from now on.
 */
static __always_inline struct kernel_thread *note_current(const struct ids *ids, const struct kernel_facts *facts,
							  __u64 current, const struct kernel_thread *before,
							  struct kernel_counts *count, void *ring)
{
	const __u64 known_ns = since(facts, before), in_ns = known_ns != 0 ? known_ns : bpf_ktime_get_ns();
	const struct kernel_thread found = {.thread = current, .in_ns = in_ns, .found = 1, .early = EARLY_MAX};
	struct kernel_thread *thread;

	/* The entry in `chances` belongs to the previous Ruby thread of this native thread. */
	bpf_map_delete_elem(&chances, &ids->tid);
	if (bpf_map_update_elem(&threads, &ids->tid, &found, BPF_ANY))
		return NULL;
	thread = bpf_map_lookup_elem(&threads, &ids->tid);
	if (thread && !tell(ids, KERNEL_IN, in_ns, current, 0, ring))
		note_lost(thread, &count->dropped);
	return thread;
}

/*
 * Returns what the program knows about the current native thread, or NULL if the program does not know the Ruby thread
 * of this native thread, or if that Ruby thread has ended.
 *   unreadable  receives 1 if memory cannot be read, so that it is not certain that the native thread still runs this
 *               Ruby thread; otherwise receives 0
 */
static __always_inline struct kernel_thread *known_thread(struct task_struct *task, const struct ids *ids,
							  const struct kernel_facts *facts, struct kernel_counts *count,
							  void *ring, int *unreadable)
{
	struct kernel_thread *thread = bpf_map_lookup_elem(&threads, &ids->tid);
	enum identity identity = IS_ANOTHER;
	bool ended = false;
	__u64 current;

	*unreadable = 0;
	if (thread && thread->thread != 0) {
		identity = identify(task, facts, thread->thread);
		*unreadable = identity == IS_UNREADABLE;
		if (identity != IS_ANOTHER)
			return thread;
		tell_end(ids, thread, count, ring);
	}
	current = current_thread(task, facts, &ended);
	if (current != 0 && !ended)
		return note_current(ids, facts, current, thread, count, ring);
	if (current != 0) {
		if (thread)
			tell_short_life(ids, facts, thread, current, count, ring);
		return NULL;
	}
	if (thread)
		note_again(ids, thread, ring);
	else
		note_unknown(ids, facts, ring);
	return NULL;
}

#endif
