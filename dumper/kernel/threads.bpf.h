/*
 * Finds out which process and which Ruby thread a task is: by its ids in rbdump's pid namespace, and by what the thread
 * itself says. The tables of the programs in the kernel are here. Each of these programs runs on the CPU of the task
 * that it asks about, and with few exceptions, that task is the current one.
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

/* A task that is ending: its memory may be gone. */
#define PF_EXITING 0x4

/*
 * After how long it is said again that a thread is not known: doubled each time, so often. If the program can find
 * threads itself, it is said for the first time after AGAIN_NS << TIMES_FOUND, because hardly any of them is a Ruby
 * thread then.
 */
#define AGAIN_NS    10000000ull
#define TIMES_MAX   6
#define TIMES_FOUND 4

/* Until its first clock interrupt, the stack of a new thread is copied when it is preempted: at most so often. */
#define EARLY_MAX 3

/* rbdump's own pid namespace: set by where(). */
__u32 level = 0;
__u64 namespace = 0;

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/* By pid, in rbdump's pid namespace. */
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

/* By tid, in rbdump's pid namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct kernel_thread);
} threads SEC(".maps");

/* By tid: the stack of a thread that begins to wait is copied in so many of 2^32 - 1 cases; in each if there is no entry. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} chances SEC(".maps");

/*
 * Reads the id of a task in the pid namespace that is so many levels below the initial one; not 0 if there is none.
 * Kernels before 6.2 refuse to add a number that is not constant to a pointer that they know, so it is read as a
 * number.
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

/* The id of a task in rbdump's pid namespace; 0 if it is not in there. */
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

/* The ids of a task in rbdump's pid namespace; 0: it is not in there. */
static __always_inline struct ids ids_of(struct task_struct *task)
{
	if (level == 0)
		return (struct ids){.pid = (__u32)task->tgid, .tid = (__u32)task->pid};
	return (struct ids){.pid = id_of(task->group_leader), .tid = id_of(task)};
}

/* Says that a thread is not known. */
static __always_inline void tell_unknown(const struct ids *ids, __u64 now_ns, void *ring)
{
	struct kernel_head head = {.time_ns = now_ns, .tid = ids->tid, .kind = KERNEL_UNKNOWN};

	bpf_ringbuf_output(ring, &head, sizeof(head), BPF_RB_FORCE_WAKEUP);
}

/*
 * Notes that a thread is not known, and reports it to rbdump. If the program can find threads itself, it reports the
 * thread only if it has not found it for a while.
 */
static __always_inline void note_unknown(const struct ids *ids, const struct kernel_facts *facts, void *ring)
{
	const bool finds = facts->where_current != KERNEL_NO_CURRENT;
	const struct kernel_thread none = {.told_ns = bpf_ktime_get_ns(), .times = finds ? TIMES_FOUND : 0};

	if (bpf_map_update_elem(&threads, &ids->tid, &none, BPF_NOEXIST) == 0 && !finds)
		tell_unknown(ids, none.told_ns, ring);
}

/*
 * Says again that a thread is not known: a native thread without a Ruby thread may have been given one. The more often
 * that was said, the longer it takes until it is said again.
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

/* Whether an rb_thread_t is that of a native thread: that goes on with another one when its thread has ended. */
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
 * Whether a thread has ended, by its first word of `thread_words`. The main thread has the status of a thread that has
 * ended while it waits for the other threads, and while it runs finalizers (eval.c, rb_ec_cleanup(), v2_7_0 to v4_0_5).
 */
static __always_inline bool has_ended(const struct kernel_facts *facts, __u64 thread, __u64 word)
{
	return thread != facts->main &&
	       (word >> (facts->status_shift & 63) & facts->status_mask) == facts->status_ended;
}

/* Counts a record of a thread that was lost. The thread's next record says so. */
static __always_inline void note_lost(struct kernel_thread *thread, __u64 *of_process)
{
	thread->lost++;
	__sync_fetch_and_add(of_process, 1);
}

/*
 * The Ruby thread that the current native thread runs, from its thread-local storage; 0 if it is not known.
 *   ended  receives whether that thread has ended
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

/* Says that a Ruby thread is on a CPU since a time, or that it has ended now: false if the ring has no room. */
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

/* Ends the Ruby thread of a native thread, which may go on with another one. */
static __always_inline void tell_end(const struct ids *ids, struct kernel_thread *thread, struct kernel_counts *count,
				     void *ring)
{
	const __u64 now_ns = bpf_ktime_get_ns(), ended = thread->thread;

	/* When rbdump takes the record, the entry must not be that of the thread any more. */
	thread->ended = ended;
	thread->thread = 0;
	/* What it ran before is of the thread that has ended. */
	thread->in_ns = now_ns;
	if (!tell(ids, KERNEL_OUT, now_ns, ended, thread->lost, ring))
		note_lost(thread, &count->dropped);
}

/* Since when the current thread is on its CPU; 0 if that is not known. */
static __always_inline __u64 since(const struct kernel_facts *facts, const struct kernel_thread *thread)
{
	return thread && thread->in_ns >= facts->since_ns ? thread->in_ns : 0;
}

/* Says what a Ruby thread ran that has begun and ended since its native thread was given its CPU. */
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

/* Notes which Ruby thread the current native thread runs, and since when: since it was given its CPU, if that is known. */
static __always_inline struct kernel_thread *note_current(const struct ids *ids, const struct kernel_facts *facts,
							  __u64 current, const struct kernel_thread *before,
							  struct kernel_counts *count, void *ring)
{
	const __u64 known_ns = since(facts, before), in_ns = known_ns != 0 ? known_ns : bpf_ktime_get_ns();
	const struct kernel_thread found = {.thread = current, .in_ns = in_ns, .found = 1, .early = EARLY_MAX};
	struct kernel_thread *thread;

	/* The chance is that of the Ruby thread before. */
	bpf_map_delete_elem(&chances, &ids->tid);
	if (bpf_map_update_elem(&threads, &ids->tid, &found, BPF_ANY))
		return NULL;
	thread = bpf_map_lookup_elem(&threads, &ids->tid);
	if (thread && !tell(ids, KERNEL_IN, in_ns, current, 0, ring))
		note_lost(thread, &count->dropped);
	return thread;
}

/*
 * What is known of the current thread; NULL if it is not known.
 *   unreadable  receives whether it could not be read whether that is right
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
