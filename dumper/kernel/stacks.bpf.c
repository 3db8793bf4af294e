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
#include "kernel/threads.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* After how long without a copy a wait of a kind is copied. */
#define COPIED_NS 1000000000ull

/* Whether the programs that count interrupts run: on_timer() to on_soft_end(). */
bool tells_interrupts = false;

/* For each CPU: in how many interrupts it is. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} interrupts SEC(".maps");

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

	if (!facts || task->flags & (PF_EXITING | PF_IO_WORKER))
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
 * Copies the stack of a thread that leaves its CPU, or does not: by chance, or if none was copied for so long when the
 * thread left its CPU in the same way. Neither depends on how long the thread will be off its CPU. The stack stands for
 * that time. It does not stand for CPU time: what wakes another thread is preempted more often there than elsewhere. But
 * if the thread is so young that the clock has not interrupted it yet, the stack also stands for CPU time.
 */
static __always_inline void copy_some(void *context, struct task_struct *task, const struct ids *ids,
				      const struct kernel_facts *facts, const struct kernel_switch *out,
				      struct kernel_thread *thread, struct kernel_counts *count, void *ring, int copied)
{
	const bool runnable = out->task_state == 0;
	const bool early = runnable && thread->found && thread->early != 0;
	__u64 *copied_ns =
	    runnable ? &thread->runnable_copied_ns : &thread->copied_ns[kind_of(facts, out) & (KERNEL_WAITS - 1)];
	const struct kernel_chances *chances_of;

	if (!early) {
		chances_of = bpf_map_lookup_elem(&chances, &ids->tid);
		if (chances_of &&
		    bpf_get_prandom_u32() > chances_of->of[runnable ? KERNEL_LEAVES_RUNNABLE : KERNEL_LEAVES_WAITING] &&
		    out->head.time_ns - *copied_ns < COPIED_NS)
			return;
		*copied_ns = out->head.time_ns;
	}
	if (copy_leaving(context, task, ids, early ? KERNEL_CLOCK : KERNEL_WAIT_STACK, facts, out, thread, count, ring,
			 copied) &&
	    early)
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
	bool ended;
	void *ring;

	if (!facts || task->flags & (PF_EXITING | PF_IO_WORKER))
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
	/* Then the record tells the end. The native thread may go on with another Ruby thread. */
	ended = facts->where_current != KERNEL_NO_CURRENT && !out.unread && has_ended(facts, out.thread, out.words[0]);
	if (ended) {
		thread->ended = out.thread;
		thread->thread = 0;
	}
	if (bpf_ringbuf_output(ring, &out, sizeof(out), BPF_RB_NO_WAKEUP)) {
		note_lost(thread, &count->dropped);
		if (ended)
			thread->thread = out.thread;
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
	if (!facts || task->flags & (PF_EXITING | PF_IO_WORKER))
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
 * A thread ends. Its ids are still known here, other than when it leaves its CPU for the last time. Since Linux 6.16,
 * its memory is still there, too (kernel/exit.c, do_exit()).
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

	if (!thread)
		return 0;
	count = bpf_map_lookup_elem(&counts, &ids.pid);
	ring = bpf_map_lookup_elem(&rings, &ids.pid);
	if (facts && count && ring && thread->thread != 0) {
		tell_end(&ids, thread, count, ring);
	} else if (facts && count && ring) {
		current = current_thread(task, facts, &ended);
		if (current != 0)
			tell_short_life(&ids, facts, thread, current, count, ring);
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
