/*
 * The program that samples in the kernel. It runs at each interrupt of a CPU's clock. If the interrupted thread is one
 * of a Ruby that rbdump follows, it copies the thread's execution context, control frames and values into the ring of
 * that process, with the registers. The thread cannot run meanwhile, because its CPU runs the program. If asked to, it
 * also tells when threads leave a CPU and are given one. The program waits for nobody: a page that is not in memory
 * stays out.
 */
/* clang-format off */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <stdbool.h>
/* clang-format on */

#include "kernel/copy.bpf.h"
#include "kernel/record.h"
#include "kernel/task.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* From the kernel's include/linux/sched.h, v5.15 to v6.18. */
#define TASK_DEAD 0x80

/* A task that is ending: its memory may be gone. */
#define PF_EXITING 0x4

/*
 * After how long it is said again that a thread is not known: doubled each time, so often. If the program can find threads
 * itself, it is said for the first time after AGAIN_NS << TIMES_FOUND, because hardly any of them is a Ruby thread then.
 */
#define AGAIN_NS    10000000ull
#define TIMES_MAX   6
#define TIMES_FOUND 4

/* Until its first clock interrupt, the stack of a new thread is copied when it is preempted: at most so often. */
#define EARLY_MAX 3

/* After how long without a copy a wait of a kind is copied. */
#define COPIED_NS 1000000000ull

/* rbdump's own pid namespace: set by where(). */
__u32 level = 0;
__u64 namespace = 0;

/* Whether the programs that count interrupts run: on_timer() to on_soft_end(). */
bool tells_interrupts = false;

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

/* For each CPU: in how many interrupts it is. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} interrupts SEC(".maps");

/*
 * Reads the id of a task in the pid namespace that is so many levels below the initial one; not 0 if there is none. Kernels
 * before 6.2 refuse to add a number that is not constant to a pointer that they know, so it is read as a number.
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

/* Run once, by rbdump itself, whose pid namespace it notes. */
SEC("syscall")
int where(void *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pid *pid = task->thread_pid;
	struct upid number = {0};

	if (!pid)
		return 1;
	level = pid->level;
	if (read_id(task, level, &number))
		return 1;
	namespace = (__u64)number.ns;
	return 0;
}

static __always_inline void copy_registers(struct bpf_perf_event_data *context, struct task_struct *task,
					   struct kernel_record *record)
{
	/* A user-space selector has the privilege level 3 (arch/x86/include/asm/ptrace.h, user_mode()). */
	if ((*(volatile __u64 *)&context->regs.cs & 3) != 3) {
		bpf_probe_read_kernel(record->registers, sizeof(record->registers), (void *)bpf_task_pt_regs(task));
		return;
	}
	record->registers[0] = context->regs.r15;
	record->registers[1] = context->regs.r14;
	record->registers[2] = context->regs.r13;
	record->registers[3] = context->regs.r12;
	record->registers[4] = context->regs.rbp;
	record->registers[5] = context->regs.rbx;
	record->registers[6] = context->regs.r11;
	record->registers[7] = context->regs.r10;
	record->registers[8] = context->regs.r9;
	record->registers[9] = context->regs.r8;
	record->registers[10] = context->regs.rax;
	record->registers[11] = context->regs.rcx;
	record->registers[12] = context->regs.rdx;
	record->registers[13] = context->regs.rsi;
	record->registers[14] = context->regs.rdi;
	record->registers[15] = context->regs.orig_rax;
	record->registers[16] = context->regs.rip;
	record->registers[17] = context->regs.cs;
	record->registers[18] = context->regs.eflags;
	record->registers[19] = context->regs.rsp;
	record->registers[20] = context->regs.ss;
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
 * Notes that a thread is not known, and says so. If the program can find threads itself, that is said only if it does not
 * find this one for a while.
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

/* Whether a thread has ended, by its first word of `thread_words`. */
static __always_inline bool has_ended(const struct kernel_facts *facts, __u64 word)
{
	return (word >> (facts->status_shift & 63) & facts->status_mask) == facts->status_ended;
}

/* Counts a record of a thread that was lost. The thread's next record says so. */
static __always_inline void note_lost(struct kernel_thread *thread, __u64 *of_process)
{
	thread->lost++;
	__sync_fetch_and_add(of_process, 1);
}

/*
 * The Ruby thread that the current native thread runs, as it notes that itself; 0: that is not known.
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
	*ended = has_ended(facts, status);
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
	const __u64 now_ns = bpf_ktime_get_ns();

	if (!tell(ids, KERNEL_OUT, now_ns, thread->thread, thread->lost, ring))
		note_lost(thread, &count->dropped);
	thread->ended = thread->thread;
	thread->thread = 0;
	/* What it ran before is of the thread that has ended. */
	thread->in_ns = now_ns;
}

/* Says what a Ruby thread ran that has begun and ended since its native thread was given its CPU. */
static __always_inline void tell_short_life(const struct ids *ids, struct kernel_thread *thread, __u64 current,
					    struct kernel_counts *count, void *ring)
{
	if (thread->in_ns == 0 || thread->ended == current)
		return;
	if (!tell(ids, KERNEL_IN, thread->in_ns, current, 0, ring) ||
	    !tell(ids, KERNEL_OUT, bpf_ktime_get_ns(), current, 0, ring))
		note_lost(thread, &count->dropped);
	thread->ended = current;
}

/* Notes which Ruby thread the current native thread runs, and since when: since it was given its CPU, if that is known. */
static __always_inline struct kernel_thread *note_current(const struct ids *ids, __u64 current,
							  const struct kernel_thread *before,
							  struct kernel_counts *count, void *ring)
{
	const __u64 in_ns = before && before->in_ns != 0 ? before->in_ns : bpf_ktime_get_ns();
	const struct kernel_thread found = {
	    .thread = current, .in_ns = in_ns, .ended = before ? before->ended : 0, .found = 1, .early = EARLY_MAX};
	struct kernel_thread *thread;

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
		return note_current(ids, current, thread, count, ring);
	if (current != 0) {
		if (thread)
			tell_short_life(ids, thread, current, count, ring);
		return NULL;
	}
	if (thread)
		note_again(ids, thread, ring);
	else
		note_unknown(ids, facts, ring);
	return NULL;
}

/* Begins a record of a thread's stack: all but frames and values. NULL if there is nothing to copy. */
static __always_inline struct scratch *begin(struct task_struct *task, const struct ids *ids,
					     const struct kernel_thread *known, __u32 kind,
					     const struct kernel_facts *facts)
{
	const __u64 thread = known->thread;
	struct scratch *scratch;
	__u32 zero = 0;

	scratch = bpf_map_lookup_elem(&scratches, &zero);
	if (!scratch)
		return NULL;
	scratch->record.head = (struct kernel_head){
	    .time_ns = bpf_ktime_get_ns(), .tid = ids->tid, .kind = kind, .lost = (__u32)known->lost};
	scratch->record.flags = 0;
	scratch->record.thread = thread;
	scratch->record.fs_base = task->thread.fsbase;
	scratch->record.frames_length = scratch->record.values_length = 0;
	scratch->record.native_length = scratch->record.functions_length = 0;
	scratch->record.word = 0;
	bpf_probe_read_user(&scratch->record.word, sizeof(scratch->record.word),
			    (void *)(thread + facts->thread_words[1]));
	if (!read_ec(facts, scratch))
		return NULL;
	read_collections(facts, scratch);
	return scratch;
}

/* The flags of a record that wakes rbdump if rbdump wants at least `from`. */
static __always_inline __u64 wakeup(const struct kernel_facts *facts, enum kernel_wakes from)
{
	return facts->wakes >= from ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline int sample(struct bpf_perf_event_data *context, int copied)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct ids ids = ids_of(task);
	const struct kernel_facts *facts = bpf_map_lookup_elem(&processes, &ids.pid);
	struct kernel_thread *thread;
	struct kernel_counts *count;
	struct scratch *scratch;
	int unreadable;
	void *ring;

	if (!facts || task->flags & PF_EXITING)
		return 0;
	count = bpf_map_lookup_elem(&counts, &ids.pid);
	ring = bpf_map_lookup_elem(&rings, &ids.pid);
	if (!count || !ring)
		return 0;
	thread = known_thread(task, &ids, facts, count, ring, &unreadable);
	if (!thread)
		return 0;
	scratch = unreadable ? NULL : begin(task, &ids, thread, KERNEL_CLOCK, facts);
	if (!scratch) {
		note_lost(thread, &count->unread);
		return 0;
	}
	copy_registers(context, task, &scratch->record);
	read_functions(facts, context, scratch);
	thread->early = 0;
	if (!finish_either(copied, facts, scratch, ring, wakeup(facts, KERNEL_WAKES_CLOCK)))
		note_lost(thread, &count->full);
	return 0;
}

SEC("perf_event")
int on_clock(struct bpf_perf_event_data *context)
{
	return sample(context, 0);
}

SEC("perf_event")
int on_clock_copied(struct bpf_perf_event_data *context)
{
	return sample(context, 1);
}

/* A hash of the kind of a wait: by its system call, and by what Ruby says. */
static __always_inline __u32 kind_of(const struct kernel_facts *facts, const struct kernel_switch *out)
{
	const int queued = out->words[2] != out->thread + facts->thread_words[2];

	return ((__u32)out->syscall * 5 + (__u32)out->words[0] * 3 + (out->words[1] != 0) * 2 + queued) % KERNEL_WAITS;
}

/* Copies the stack of a thread that leaves its CPU, as it is in user space. */
static __always_inline int copy_leaving(void *context, struct task_struct *task, const struct ids *ids, __u32 kind,
					const struct kernel_facts *facts, const struct kernel_switch *out,
					struct kernel_thread *thread, struct kernel_counts *count, void *ring,
					int copied)
{
	struct scratch *scratch = begin(task, ids, thread, kind, facts);

	if (!scratch)
		return 0;
	scratch->record.head.time_ns = out->head.time_ns;
	bpf_probe_read_kernel(scratch->record.registers, sizeof(scratch->record.registers),
			      (void *)bpf_task_pt_regs(task));
	read_functions(facts, context, scratch);
	if (finish_either(copied, facts, scratch, ring, wakeup(facts, KERNEL_WAKES_ALL)))
		return 1;
	note_lost(thread, &count->dropped);
	return 0;
}

/*
 * Copies the stack of a thread that leaves its CPU, or does not.
 * - If it begins to wait: by chance, or if no wait of that kind was copied for so long. Neither depends on how long the
 *   wait will last.
 * - If it was preempted: if it is so young that the clock has not interrupted it yet. Later ones are shown by the stacks of
 *   the clock: what wakes another thread is preempted more often there than elsewhere.
 */
static __always_inline void copy_some(void *context, struct task_struct *task, const struct ids *ids,
				      const struct kernel_facts *facts, const struct kernel_switch *out,
				      struct kernel_thread *thread, struct kernel_counts *count, void *ring, int copied)
{
	const __u32 wait = kind_of(facts, out) & (KERNEL_WAITS - 1);
	const bool waits = out->task_state != 0;
	const __u32 *chance;

	if (waits) {
		chance = bpf_map_lookup_elem(&chances, &ids->tid);
		if (chance && bpf_get_prandom_u32() > *chance &&
		    out->head.time_ns - thread->copied_ns[wait] < COPIED_NS)
			return;
		thread->copied_ns[wait] = out->head.time_ns;
	} else if (!thread->found || thread->early == 0) {
		return;
	}
	if (copy_leaving(context, task, ids, waits ? KERNEL_WAIT_STACK : KERNEL_CLOCK, facts, out, thread, count, ring,
			 copied) &&
	    !waits && thread->early > 0)
		thread->early--;
}

/*
 * A thread leaves its CPU: it is still the current one. Its state is as of now: if it was woken just now, that is
 * TASK_WAKING, and what it waited for is not known from that. The end of a thread is told by on_exit().
 */
static __always_inline void leave(void *context, struct task_struct *task, int preempted, int copied)
{
	const struct ids ids = ids_of(task);
	const struct kernel_facts *facts = bpf_map_lookup_elem(&processes, &ids.pid);
	struct kernel_switch out = {.head = {.tid = ids.tid, .kind = KERNEL_OUT}, .syscall = -1};
	struct kernel_thread *thread;
	struct kernel_counts *count;
	struct pt_regs *registers;
	int unreadable = 0;
	long syscall = -1;
	void *ring;

	if (!facts || task->flags & PF_EXITING)
		return;
	count = bpf_map_lookup_elem(&counts, &ids.pid);
	ring = bpf_map_lookup_elem(&rings, &ids.pid);
	if (!count || !ring)
		return;
	thread = known_thread(task, &ids, facts, count, ring, &unreadable);
	if (!thread)
		return;
	out.head.time_ns = bpf_ktime_get_ns();
	out.task_state = preempted ? 0 : task->__state;
	thread->woken_ns = 0;
	thread->out_ns = out.head.time_ns;
	out.thread = thread->thread;
	registers = (struct pt_regs *)bpf_task_pt_regs(task);
	if (bpf_probe_read_kernel(&syscall, sizeof(syscall), &registers->orig_rax) == 0)
		out.syscall = (__s32)syscall;
	for (int i = 0; i < 3; i++)
		out.unread |= bpf_probe_read_user(&out.words[i], sizeof(out.words[i]),
						  (void *)(out.thread + facts->thread_words[i])) != 0;
	if (!unreadable)
		copy_some(context, task, &ids, facts, &out, thread, count, ring, copied);
	out.head.lost = (__u32)thread->lost;
	if (bpf_ringbuf_output(ring, &out, sizeof(out), BPF_RB_NO_WAKEUP)) {
		note_lost(thread, &count->dropped);
	} else if (facts->where_current != KERNEL_NO_CURRENT && !out.unread && has_ended(facts, out.words[0])) {
		/* The record tells the end. The native thread may go on with another Ruby thread. */
		thread->ended = thread->thread;
		thread->thread = 0;
	}
}

/* A thread is given a CPU, but it is not the current one yet. */
static __always_inline void arrive(struct task_struct *task)
{
	const struct ids ids = ids_of(task);
	struct kernel_switch in = {.head = {.tid = ids.tid, .kind = KERNEL_IN}};
	const struct kernel_facts *facts;
	struct kernel_thread *thread;
	struct kernel_counts *count;
	void *ring;

	facts = bpf_map_lookup_elem(&processes, &ids.pid);
	if (!facts || task->flags & PF_EXITING)
		return;
	in.head.time_ns = bpf_ktime_get_ns();
	thread = bpf_map_lookup_elem(&threads, &ids.tid);
	count = bpf_map_lookup_elem(&counts, &ids.pid);
	ring = bpf_map_lookup_elem(&rings, &ids.pid);
	if (!thread && facts->where_current != KERNEL_NO_CURRENT) {
		/* Which Ruby thread it runs can be read only while it is the current one. */
		const struct kernel_thread none = {
		    .in_ns = in.head.time_ns, .told_ns = in.head.time_ns, .times = TIMES_FOUND};

		bpf_map_update_elem(&threads, &ids.tid, &none, BPF_NOEXIST);
	}
	if (!thread)
		return;
	thread->in_ns = in.head.time_ns;
	/* Another Ruby thread of this native thread may have the address of one that has ended. */
	thread->ended = 0;
	if (thread->thread == 0 || !count || !ring)
		return;
	in.thread = thread->thread;
	in.woken_ns = thread->woken_ns;
	in.waker_pid = thread->waker_pid;
	in.waker_tid = thread->waker_tid;
	thread->waker_pid = thread->waker_tid = 0;
	in.head.lost = (__u32)thread->lost;
	if (bpf_ringbuf_output(ring, &in, sizeof(in), BPF_RB_NO_WAKEUP))
		note_lost(thread, &count->dropped);
}

/* From kernel/sched/core.c, v5.15 to v6.18: trace_sched_switch(preempt, prev, next); since v5.18 also prev_state. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *previous, struct task_struct *next)
{
	leave(ctx, previous, preempted, 0);
	arrive(next);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_copied, bool preempted, struct task_struct *previous, struct task_struct *next)
{
	leave(ctx, previous, preempted, 1);
	arrive(next);
	return 0;
}

/*
 * A thread ends. Its ids are still known here, other than when it leaves its CPU for the last time. Since Linux 6.16, its
 * memory is still there, too (kernel/exit.c, do_exit()).
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	const struct ids ids = ids_of(task);
	const struct kernel_facts *facts = bpf_map_lookup_elem(&processes, &ids.pid);
	struct kernel_thread *thread = bpf_map_lookup_elem(&threads, &ids.tid);
	struct kernel_counts *count;
	bool ended = false;
	__u64 current;
	void *ring;

	if (!facts || !thread)
		return 0;
	count = bpf_map_lookup_elem(&counts, &ids.pid);
	ring = bpf_map_lookup_elem(&rings, &ids.pid);
	if (count && ring && thread->thread != 0) {
		tell_end(&ids, thread, count, ring);
	} else if (count && ring) {
		current = current_thread(task, facts, &ended);
		if (current != 0)
			tell_short_life(&ids, thread, current, count, ring);
	}
	bpf_map_delete_elem(&threads, &ids.tid);
	bpf_map_delete_elem(&chances, &ids.tid);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *woken)
{
	const struct ids ids = ids_of(woken);
	struct kernel_thread *thread;

	if (!bpf_map_lookup_elem(&processes, &ids.pid))
		return 0;
	thread = bpf_map_lookup_elem(&threads, &ids.tid);
	if (!thread || thread->thread == 0)
		return 0;
	thread->woken_ns = bpf_ktime_get_ns();
	return 0;
}

/* A CPU begins to handle an interrupt, or has handled it. */
static __always_inline int count_interrupt(int begins)
{
	__u32 zero = 0, *depth = bpf_map_lookup_elem(&interrupts, &zero);

	if (depth && begins)
		(*depth)++;
	else if (depth && *depth > 0)
		(*depth)--;
	return 0;
}

/*
 * The interrupts that wake threads: of the timer (arch/x86/include/asm/trace/irq_vectors.h, v5.15 to v6.18), of
 * devices, and what is left to do after both (include/trace/events/irq.h).
 */
SEC("tp_btf/local_timer_entry")
int on_timer(void *context)
{
	return count_interrupt(1);
}

SEC("tp_btf/local_timer_exit")
int on_timer_end(void *context)
{
	return count_interrupt(0);
}

SEC("tp_btf/irq_handler_entry")
int on_device(void *context)
{
	return count_interrupt(1);
}

SEC("tp_btf/irq_handler_exit")
int on_device_end(void *context)
{
	return count_interrupt(0);
}

SEC("tp_btf/softirq_entry")
int on_soft(void *context)
{
	return count_interrupt(1);
}

SEC("tp_btf/softirq_exit")
int on_soft_end(void *context)
{
	return count_interrupt(0);
}

/* Whether this CPU handles an interrupt: then the current task has nothing to do with what happens. */
static __always_inline int in_interrupt(void)
{
	__u32 zero = 0, *depth = bpf_map_lookup_elem(&interrupts, &zero);

	return !depth || *depth > 0;
}

/*
 * A thread is about to be woken, by the current task or by an interrupt. on_wakeup() may run on another CPU than this,
 * and so cannot tell by whom.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *woken)
{
	const struct ids ids = ids_of(woken);
	struct kernel_thread *thread;
	struct ids waker = {0};

	if (!bpf_map_lookup_elem(&processes, &ids.pid))
		return 0;
	thread = bpf_map_lookup_elem(&threads, &ids.tid);
	if (!thread || thread->thread == 0)
		return 0;
	if (tells_interrupts && !in_interrupt())
		waker = ids_of(bpf_get_current_task_btf());
	thread->waker_pid = waker.pid;
	thread->waker_tid = waker.tid;
	return 0;
}
