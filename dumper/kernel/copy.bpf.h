/*
 * Copies the bytes of a thread's stack, unchanged, into a ring of records (kernel/ring.h). Used by stacks.bpf.c.
 */
#ifndef RBDUMP_COPY_BPF_H
#define RBDUMP_COPY_BPF_H

/* clang-format off */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
/* clang-format on */

#include "kernel/record.h"

/*
 * The maximum number of frames that find_stack() examines. find_stack() looks for a frame that has its environment on
 * the stack. The frame of a block or method has its environment on the stack, unless a Proc or a Binding has moved the
 * environment to the heap.
 */
#define LOOKS 64

/*
 * The data that is too large for the stack of the BPF program. Each CPU has its own struct scratch, and two programs
 * never use the same struct at the same time: while the scheduler calls on_switch(), interrupts are off, so the clock
 * cannot interrupt on_switch().
 */
struct scratch {
	struct kernel_record record;
	__u8 ec[KERNEL_EC_MAX];
	__u8 collections[KERNEL_COLLECTIONS_MAX];
	__u64 functions[KERNEL_FUNCTIONS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* Since Linux 6.16. */
extern int bpf_probe_read_user_dynptr(struct bpf_dynptr *ptr, __u64 offset, __u64 size,
				      const void *address) __ksym __weak;

/* The addresses at which the parts of a thread's stack begin or end. */
struct extent {
	__u64 vm_stack, cfp, end, values_end;
};

/*
 * Limits a length to `most`, which must be a constant. The comparison and the assignment must use the same register. If
 * a copy of the register is compared, some verifiers (Linux 6.1) forget the limit. The compiler might compare a copy,
 * so the macro is written in assembler.
 *
 * The verifier first follows the path on which the length is not greater than `most`. On this path, the verifier knows
 * only that the length is between 0 and `most`. On the other path, the length is set to `most`, which is between 0 and
 * `most`, too. Therefore, the verifier does not need to check the code after this macro again for the other path.
 */
#define at_most(length, most)                                                                                          \
	({                                                                                                             \
		__u64 limited_ = (length);                                                                             \
		asm volatile("if %0 > %1 goto +1\n\tgoto +1\n\t%0 = %1" : "+r"(limited_) : "i"(most));                 \
		limited_;                                                                                              \
	})

static __always_inline __u64 word_of_ec(const struct scratch *scratch, __u32 offset)
{
	return *(const __u64 *)(scratch->ec + (offset & (KERNEL_EC_MAX - 8)));
}

/* Reads the execution context of a thread. Returns false if the execution context cannot be read. */
static __always_inline int read_ec(const struct kernel_facts *facts, struct scratch *scratch)
{
	struct kernel_record *record = &scratch->record;
	__u32 length = facts->ec_length;

	if (bpf_probe_read_user(&record->thread_word, sizeof(record->thread_word),
				(void *)(record->thread + facts->thread_word)))
		return 0;
	record->ec = facts->thread_is_ec ? record->thread : record->thread_word;
	if (length > KERNEL_EC_MAX)
		return 0;
	record->ec_length = length;
	return bpf_probe_read_user(scratch->ec, length, (void *)(record->ec + facts->ec_offset)) == 0;
}

/* Reads the state of the garbage collector. If the state cannot be read, `collections_length` is 0. */
static __always_inline void read_collections(const struct kernel_facts *facts, struct scratch *scratch)
{
	__u32 length = facts->collections_length;

	scratch->record.collections_length = 0;
	if (length == 0 || length > KERNEL_COLLECTIONS_MAX ||
	    bpf_probe_read_user(scratch->collections, length, (void *)facts->collections))
		return;
	scratch->record.collections_length = length;
}

/*
 * Finds the stack. On the stack, the values end with the environment that has the highest address. This environment
 * belongs to the innermost frame that has its environment on the stack.
 */
static __always_inline int find_stack(const struct kernel_facts *facts, struct scratch *scratch, __u64 most,
				      struct extent *ret)
{
	__u64 cfp, end, vm_stack = word_of_ec(scratch, facts->vm_stack), words = word_of_ec(scratch, facts->words);

	cfp = word_of_ec(scratch, facts->cfp);
	end = vm_stack + words * 8;
	if (vm_stack == 0 || words > 1ull << 32 || cfp < vm_stack || cfp >= end)
		return KERNEL_NO_STACK;
	if (end - cfp > most)
		return KERNEL_TOO_DEEP;
	*ret = (struct extent){.vm_stack = vm_stack, .cfp = cfp, .end = end, .values_end = vm_stack};
	for (int i = 0; i < LOOKS; i++) {
		__u64 ep = 0;

		if (cfp >= end || bpf_probe_read_user(&ep, sizeof(ep), (void *)(cfp + facts->frame_ep)))
			break;
		if (ep >= vm_stack && ep < ret->cfp) {
			ret->values_end = ep + 8;
			break;
		}
		cfp += facts->frame_size;
	}
	return ret->values_end - vm_stack > most ? KERNEL_TOO_DEEP : 0;
}

/* The index of the stack pointer in kernel_record.registers. */
#define STACK_POINTER 19

/* Reads the thread's call stack in the kernel: one address in each kernel function that the thread is in. */
static __always_inline void read_functions(const struct kernel_facts *facts, void *context, struct scratch *scratch)
{
	long length = 0;

	if (facts->functions)
		length = bpf_get_stack(context, scratch->functions, sizeof(scratch->functions), 0);
	scratch->record.functions_length = length > 0 ? length : 0;
}

/* The number of bytes that come before the frames in a record. */
static __always_inline __u32 before_frames(const struct kernel_record *record)
{
	return sizeof(*record) + kernel_in_eights(record->ec_length) + kernel_in_eights(record->collections_length);
}

/*
 * Copies the innermost part of the native stack into a record: `length` bytes, or fewer bytes if not all of them can be
 * read. Returns the number of bytes that were copied.
 */
static __always_inline __u32 copy_native(struct bpf_dynptr *to, __u32 at, __u32 length, __u64 from)
{
	for (int i = 0; i < 5 && length >= 8; i++) {
		if (bpf_probe_read_user_dynptr(to, at, length, (void *)from) == 0)
			return length;
		length /= 2;
	}
	return 0;
}

/* Copies frames and values directly into the ring, and completes the record. Returns false if the ring has no room. */
static __always_inline int finish(const struct kernel_facts *facts, struct scratch *scratch, void *ring, __u64 wakeup)
{
	struct kernel_record *record = &scratch->record;
	const __u32 native = facts->native_length <= KERNEL_NATIVE_MAX ? facts->native_length : 0;
	struct extent extent = {0};
	__u32 frames, values, at;
	struct bpf_dynptr to;

	record->flags |= find_stack(facts, scratch, KERNEL_PART_MAX, &extent);
	if (record->flags & (KERNEL_NO_STACK | KERNEL_TOO_DEEP))
		extent = (struct extent){0};
	frames = extent.end - extent.cfp;
	values = extent.values_end - extent.vm_stack;
	at = before_frames(record);
	if (bpf_ringbuf_reserve_dynptr(ring, at + frames + values + native + record->functions_length, 0, &to)) {
		bpf_ringbuf_discard_dynptr(&to, BPF_RB_NO_WAKEUP);
		return 0;
	}
	if (bpf_probe_read_user_dynptr(&to, at, frames, (void *)extent.cfp) ||
	    bpf_probe_read_user_dynptr(&to, at + frames, values, (void *)extent.vm_stack)) {
		record->flags |= KERNEL_MISSING;
		record->functions_length = 0;
	} else {
		record->frames_length = frames;
		record->values_length = values;
		at += frames + values;
		record->native_length = copy_native(&to, at, native, record->registers[STACK_POINTER]);
		at += record->native_length;
		if (record->functions_length <= sizeof(scratch->functions))
			bpf_dynptr_write(&to, at, scratch->functions, record->functions_length, 0);
	}
	bpf_dynptr_write(&to, 0, record, sizeof(*record), 0);
	at = sizeof(*record);
	if (record->ec_length <= KERNEL_EC_MAX)
		bpf_dynptr_write(&to, at, scratch->ec, record->ec_length, 0);
	at += kernel_in_eights(record->ec_length);
	if (record->collections_length <= KERNEL_COLLECTIONS_MAX)
		bpf_dynptr_write(&to, at, scratch->collections, record->collections_length, 0);
	bpf_ringbuf_submit_dynptr(&to, wakeup);
	return 1;
}

/* The memory in which finish_copied() builds a record. Each CPU has its own struct room. */
struct room {
	/*
	 * The kernel's verifier overestimates the lengths that kernel_in_eights() returns, so the array has 64 extra
	 * bytes.
	 */
	__u8 bytes[sizeof(struct kernel_record) + KERNEL_EC_MAX + KERNEL_COLLECTIONS_MAX + 64 +
		   2 * KERNEL_PART_MAX_COPIED + KERNEL_NATIVE_MAX + 8 * KERNEL_FUNCTIONS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct room);
} rooms SEC(".maps");

/* The variant of copy_native() for kernels before 6.16. */
static __always_inline __u32 copy_native_to(__u8 *to, __u32 length, __u64 from)
{
	for (int i = 0; i < 5 && length >= 8; i++) {
		if (bpf_probe_read_user(to, at_most(length, KERNEL_NATIVE_MAX), (void *)from) == 0)
			return length;
		length /= 2;
	}
	return 0;
}

/* The variant of finish() for kernels before 6.16. Copies the stack first to a struct room, and then into the ring. */
static __always_inline int finish_copied(const struct kernel_facts *facts, struct scratch *scratch, void *ring,
					 __u64 wakeup)
{
	struct kernel_record *record = &scratch->record;
	__u32 cpu = bpf_get_smp_processor_id();
	struct room *room = bpf_map_lookup_elem(&rooms, &cpu);
	struct extent extent = {0};
	__u64 ec, collections, frames, values, at, functions, native = 0;

	if (!room)
		return 0;
	record->flags |= find_stack(facts, scratch, KERNEL_PART_MAX_COPIED, &extent);
	if (record->flags & (KERNEL_NO_STACK | KERNEL_TOO_DEEP))
		extent = (struct extent){0};
	/*
	 * find_stack() has already checked the lengths of the frames and the values. Here, at_most() only shows the
	 * limit to the verifier.
	 */
	frames = at_most(extent.end - extent.cfp, KERNEL_PART_MAX_COPIED);
	values = at_most(extent.values_end - extent.vm_stack, KERNEL_PART_MAX_COPIED);
	ec = at_most(record->ec_length, KERNEL_EC_MAX);
	collections = at_most(record->collections_length, KERNEL_COLLECTIONS_MAX);
	at = sizeof(*record) + kernel_in_eights(ec) + kernel_in_eights(collections);
	if (bpf_probe_read_user(room->bytes + at, frames, (void *)extent.cfp) ||
	    bpf_probe_read_user(room->bytes + at + frames, values, (void *)extent.vm_stack)) {
		record->flags |= KERNEL_MISSING;
		frames = values = 0;
	} else {
		native = copy_native_to(room->bytes + at + frames + values, facts->native_length,
					record->registers[STACK_POINTER]);
	}
	native = at_most(native, KERNEL_NATIVE_MAX);
	functions = at_most(record->functions_length, sizeof(scratch->functions));
	record->frames_length = frames;
	record->values_length = values;
	record->native_length = native;
	record->functions_length = functions;
	bpf_probe_read_kernel(room->bytes + at + frames + values + native, functions, scratch->functions);
	__builtin_memcpy(room->bytes, record, sizeof(*record));
	bpf_probe_read_kernel(room->bytes + sizeof(*record), ec, scratch->ec);
	bpf_probe_read_kernel(room->bytes + sizeof(*record) + kernel_in_eights(ec), collections, scratch->collections);
	return bpf_ringbuf_output(ring, room->bytes, at + frames + values + native + functions, wakeup) == 0;
}

static __always_inline int finish_either(int copied, const struct kernel_facts *facts, struct scratch *scratch,
					 void *ring, __u64 wakeup)
{
	return copied ? finish_copied(facts, scratch, ring, wakeup) : finish(facts, scratch, ring, wakeup);
}

#endif
