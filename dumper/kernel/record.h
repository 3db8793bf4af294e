/*
 * What the program in the kernel (stacks.bpf.c) and rbdump tell each other: what the program must know about a Ruby
 * process, and the records that the program writes. This header is compiled for both.
 *
 * The program copies bytes as they are. It knows no struct of Ruby's: all offsets are in
 * `struct kernel_facts`, which rbdump fills in from the process's layout.
 */
#ifndef RBDUMP_KERNEL_RECORD_H
#define RBDUMP_KERNEL_RECORD_H

#include <linux/types.h>

/* The most bytes of an execution context, and of the garbage collector's state, in a record. Powers of two. */
#define KERNEL_EC_MAX	       1024u
#define KERNEL_COLLECTIONS_MAX 2048u

/* The most bytes of control frames and of values in a record: 2 MiB each. */
#define KERNEL_PART_MAX (2u << 20)

/* The same on kernels before 6.16, where the program copies the stack to memory of its own first. */
#define KERNEL_PART_MAX_COPIED (512u << 10)

/* Where the pthread_t of a thread is. */
enum kernel_where_pthread { KERNEL_NOWHERE, KERNEL_IN_THREAD, KERNEL_IN_NATIVE };

/* What the program must know about a process. Offsets and lengths are in bytes. */
struct kernel_facts {
	__u64 collections;	  /* the address of the state of the garbage collector (ruby/collections.h) */
	__u32 collections_length; /* at most KERNEL_COLLECTIONS_MAX; 0: this Ruby has no such state */
	__u32 thread_is_ec;	  /* a thread is itself an execution context (ruby/context.h) */
	__u32 thread_word;	  /* offset in a thread: the pointer to its execution context, unless `thread_is_ec` */
	__u32 ec_offset;	  /* offset in an execution context: where the part that is copied begins */
	__u32 ec_length;	  /* the length of that part: at most KERNEL_EC_MAX */
	__u32 vm_stack, words, cfp; /* offsets in that part; each member has 8 bytes */
	/* Whether each stack ends a kernel_ring_wait(). Each such wake-up costs the sampled thread about 1 us. */
	__u32 wakes;
	/*
	 * Where the pthread_t of a thread is. It must be equal to the fs_base of the thread's native thread. With
	 * KERNEL_IN_THREAD, it is at the offset `pthread` in the thread. With KERNEL_IN_NATIVE, it is at the offset
	 * `pthread` in the struct to which the word at the offset `native` in the thread points.
	 */
	__u32 where_pthread, native, pthread;
	__u32 thread_words[3];	    /* offsets in a thread: words that tell what the thread waits for */
	__u32 frame_size, frame_ep; /* the size of a control frame, and the offset of its ep */
};

/* What a record is about. All records begin with struct kernel_head. */
enum kernel_kind {
	KERNEL_CLOCK = 1, /* struct kernel_record: the stack of a thread at an interrupt of its CPU's clock */
	KERNEL_WAIT_STACK, /* struct kernel_record: the stack of a thread that leaves its CPU; the next record says why */
	KERNEL_OUT,	   /* struct kernel_switch: a thread has left its CPU */
	KERNEL_IN,	   /* struct kernel_switch: a thread was given a CPU */
	KERNEL_UNKNOWN,	   /* struct kernel_head: a thread ran that the program does not know */
};

struct kernel_head {
	__u64 time_ns; /* by CLOCK_MONOTONIC */
	__u32 tid;     /* in rbdump's pid namespace */
	__u32 kind;    /* enum kernel_kind */
};

/* A thread was switched. */
struct kernel_switch {
	struct kernel_head head;
	__u64 thread; /* its rb_thread_t */
	/* With KERNEL_IN: when the thread was woken; 0: it was not woken, or that is not known */
	__u64 woken_ns;
	/* With KERNEL_OUT: */
	__u32
	    task_state; /* 0: it could run on; else what it waits for (TASK_... of the kernel's include/linux/sched.h) */
	__s32 syscall;	/* the number of the system call that it is in; -1: in none */
	__u64 unread;	/* not 0: not all of `words` could be read */
	__u64 words[3]; /* the words of the rb_thread_t at `thread_words` of struct kernel_facts */
};

/*
 * How many registers of user space a record has: in the order of the kernel's struct pt_regs and struct
 * user_regs_struct.
 */
#define KERNEL_REGISTERS 21

enum kernel_record_flags {
	KERNEL_MISSING = 1,  /* a page of the stack is not in memory: the record lacks the frames and the values */
	KERNEL_TOO_DEEP = 2, /* the stack is longer than a record can be: the record lacks the frames and the values */
	KERNEL_NO_STACK = 4, /* the thread has no stack, or what it has cannot be one */
};

/*
 * The stack of a thread, at an interrupt of a CPU's clock, or when it leaves its CPU. These bytes follow, each part at a
 * multiple of 8 bytes: the part of the execution context, the state of the garbage collector, the control frames from the
 * innermost one to the end of the stack, and the values from the beginning of the stack to the end of the highest environment.
 */
struct kernel_record {
	struct kernel_head head;
	__u32 flags; /* enum kernel_record_flags */
	__u32 unused;
	__u64 word; /* the second of `thread_words` of struct kernel_facts; 0 if it cannot be read */
	__u64 thread, ec;
	__u64 thread_word; /* the word at `thread_word` of struct kernel_facts */
	__u64 fs_base;
	__u64 registers[KERNEL_REGISTERS];
	__u32 ec_length, collections_length, frames_length,
	    values_length; /* the lengths of the parts, without the padding up to a multiple of 8 */
};

/*
 * How many kinds of waits of a thread are told apart: a power of two. At least one wait of each kind is copied per
 * second.
 */
#define KERNEL_WAITS 8u

/* What the program knows of a thread. */
struct kernel_thread {
	__u64 thread; /* the rb_thread_t; 0: not known */
	__u64 out_ns; /* when the thread last left its CPU; 0: not since the thread became known */
	__u64 woken_ns;
	__u64 copied_ns[KERNEL_WAITS]; /* when a wait was last copied; the index is a hash of the kind of wait */
	/* If `thread` is 0: how many times KERNEL_UNKNOWN was repeated for the thread, and when it was last written */
	__u64 times, told_ns;
};

/* How many records of a process were lost, and why. */
struct kernel_counts {
	__u64 full;    /* the ring had no room for the stack of an interrupt */
	__u64 dropped; /* the ring had no room for a record of another kind */
	__u64 unread;  /* the thread or its execution context could not be read, because a page is not in memory */
};

/* Parts of a record begin at multiples of 8 bytes. */
static inline __u32 kernel_in_eights(__u32 length)
{
	return (length + 7) & ~7u;
}

#endif
