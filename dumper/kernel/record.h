/*
 * The data that rbdump and the program in the kernel (stacks.bpf.c) exchange. rbdump gives the program facts about each
 * Ruby process. The program writes records, and rbdump reads the records. Both rbdump and the program include this
 * header.
 *
 * The program copies bytes without changing them. The program does not know the structs of Ruby. All offsets that
 * it needs are in struct kernel_facts, which rbdump fills in from the layout of the process.
 */
#ifndef RBDUMP_KERNEL_RECORD_H
#define RBDUMP_KERNEL_RECORD_H

#include <linux/types.h>

/*
 * In a record, the copied part of the execution context and the state of the garbage collector have at most these
 * sizes, in bytes. Both sizes are powers of two.
 */
#define KERNEL_EC_MAX	       1024u
#define KERNEL_COLLECTIONS_MAX 2048u

/* In a record, the control frames take at most 2 MiB, and the values take at most 2 MiB. */
#define KERNEL_PART_MAX (2u << 20)

/*
 * On kernels before 6.16, the limit is 512 KiB for the control frames, and 512 KiB for the values. On these kernels,
 * the program first copies the stack to its own memory.
 */
#define KERNEL_PART_MAX_COPIED (512u << 10)

/* A record contains at most 16 KiB of the native stack. */
#define KERNEL_NATIVE_MAX (16u << 10)

/* The maximum number of the kernel's own functions in a record. */
#define KERNEL_FUNCTIONS_MAX 64u

/* The struct in which Ruby stores the pthread_t of a thread. */
enum kernel_where_pthread { KERNEL_NOWHERE, KERNEL_IN_THREAD, KERNEL_IN_NATIVE };

/*
 * What a native thread stores in a word at a fixed distance from its thread pointer (fs_base). The word points to the
 * execution context of the Ruby thread that the native thread runs, or to the rb_thread_t of this Ruby thread.
 */
enum kernel_where_current { KERNEL_NO_CURRENT, KERNEL_CURRENT_EC, KERNEL_CURRENT_THREAD };

/*
 * Which kinds of records end a call of kernel_ring_wait(), in addition to KERNEL_UNKNOWN. When a record of such a kind
 * is written, the sampled thread wakes rbdump. This wake-up takes about 6 us of the sampled thread's time.
 */
enum kernel_wakes {
	KERNEL_WAKES_NONE,
	KERNEL_WAKES_CLOCK, /* KERNEL_CLOCK */
	KERNEL_WAKES_ALL,   /* KERNEL_CLOCK and KERNEL_WAIT_STACK */
};

/* What the program must know about a process. Offsets and lengths are in bytes. */
struct kernel_facts {
	__u64 collections;	  /* the address of the state of the garbage collector (ruby/collections.h) */
	__u32 collections_length; /* size of the collector's state, at most KERNEL_COLLECTIONS_MAX; 0: not copied */
	__u32 thread_is_ec;	  /* not 0: the rb_thread_t itself is the execution context (ruby/context.h) */
	__u32 thread_word;	  /* offset of the thread's pointer to its execution context, if `thread_is_ec` is 0 */
	__u32 ec_offset;	  /* offset of the copied part in the execution context */
	__u32 ec_length;	  /* the length of the copied part of the execution context, at most KERNEL_EC_MAX */
	__u32 vm_stack, words, cfp; /* offsets of 8-byte words in the copied part of the execution context */
	__u32 wakes;		    /* enum kernel_wakes */
	/*
	 * Where Ruby stores the pthread_t of a thread. The program checks that this pthread_t is equal to the fs_base of
	 * the native thread. With KERNEL_IN_THREAD, the pthread_t is in the rb_thread_t, at the offset `pthread`. With
	 * KERNEL_IN_NATIVE, the pthread_t is in another struct, at the offset `pthread`. The word at the offset `native`
	 * in the rb_thread_t points to that struct.
	 */
	__u32 where_pthread, native, pthread;
	/*
	 * `current`: the distance from fs_base to the word that `where_current` describes. `ec_thread`: if
	 * `where_current` is KERNEL_CURRENT_EC, the offset at which an execution context contains the pointer to the
	 * rb_thread_t. A thread has ended if (word >> status_shift & status_mask) == status_ended, where `word` is the
	 * word at the offset `thread_words[0]` in the rb_thread_t.
	 */
	__u32 where_current, ec_thread;
	__s32 current;
	__u64 main;	/* the rb_thread_t of the main thread, which ends only with its native thread; 0: not known */
	__u64 since_ns; /* when the program began to sample the process, by CLOCK_MONOTONIC */
	__u32 status_shift, status_mask, status_ended;
	__u32 thread_words[3];	    /* offsets of the words in the rb_thread_t that show what the thread waits for */
	__u32 frame_size, frame_ep; /* the size of a control frame, and the offset of ep in a control frame */
	/*
	 * `native_length`: the number of bytes of the native stack to copy. It is 0, or a power of two from 1,024 to
	 * KERNEL_NATIVE_MAX. `functions`: if not 0, records also contain the kernel's own functions.
	 */
	__u32 native_length, functions;
};

/* What a record is about. All records begin with struct kernel_head. */
enum kernel_kind {
	/*
	 * struct kernel_record: the stack of a thread that was interrupted by its CPU's clock, or the stack of a new
	 * thread that is preempted (EARLY_MAX in threads.bpf.h)
	 */
	KERNEL_CLOCK = 1,
	KERNEL_WAIT_STACK, /* struct kernel_record: stack of a thread that leaves its CPU; its next KERNEL_OUT says why */
	KERNEL_OUT,	   /* struct kernel_switch: a thread has left its CPU */
	KERNEL_IN,	   /* struct kernel_switch: a thread was given a CPU */
	KERNEL_UNKNOWN,	   /* struct kernel_head: the thread `tid` has run, but its Ruby thread is not known */
};

struct kernel_head {
	__u64 time_ns; /* by CLOCK_MONOTONIC */
	__u32 tid;     /* the thread's id in rbdump's pid namespace */
	__u32 kind;    /* enum kernel_kind */
	__u32 lost;    /* how many records of this thread have been lost so far (`lost` of struct kernel_thread) */
	__u32 unused;
};

/* A thread has left its CPU, or was given a CPU. */
struct kernel_switch {
	struct kernel_head head;
	__u64 thread; /* its rb_thread_t */
	/*
	 * With KERNEL_IN: the time at which the thread was woken; 0: the thread was not woken, or the time is not known
	 */
	__u64 woken_ns;
	/*
	 * With KERNEL_IN: the ids of the waker in rbdump's pid namespace. The waker is the thread that woke this
	 * thread. Both ids are 0 if the waker is not known, if it is not in rbdump's pid namespace, or if an interrupt
	 * (of a timer or a device) woke this thread.
	 */
	__u32 waker_pid, waker_tid;
	/*
	 * The members below are set only in records of the kind KERNEL_OUT. `task_state` is 0 if the thread could still
	 * run. If `task_state` is TASK_DEAD, the thread has ended. Any other value is the kind of wait (TASK_... in the
	 * kernel's include/linux/sched.h).
	 */
	__u32 task_state;
	__s32 syscall;	/* the number of the system call that the thread is in; -1: no system call */
	__u64 unread;	/* 0 if all `words` could be read */
	__u64 words[3]; /* words of the rb_thread_t, at the offsets `thread_words` (struct kernel_facts) */
};

/*
 * The number of user-space registers in a record. The registers are in the order of the kernel's struct pt_regs and
 * struct user_regs_struct.
 */
#define KERNEL_REGISTERS 21

enum kernel_record_flags {
	KERNEL_MISSING = 1,  /* a page of the stack is not in memory: the record lacks the frames and the values */
	KERNEL_TOO_DEEP = 2, /* the stack is too long for a record: the record lacks the frames and the values */
	KERNEL_NO_STACK = 4, /* the thread has no stack, or the addresses of its stack are impossible */
};

/*
 * The stack of a thread, copied when its CPU's clock interrupted the thread, or when the thread left its CPU. In a
 * record, each part begins at a multiple of 8 bytes. These parts follow this struct:
 * - a part of the execution context;
 * - the state of the garbage collector;
 * - the control frames, from the innermost frame to the end of the stack;
 * - the values, from the beginning of the stack to the end of the environment with the highest address;
 * - the innermost part of the native stack: it begins at the address in the stack pointer;
 * - an address in each function of the kernel that the thread was in, the innermost function first.
 */
struct kernel_record {
	struct kernel_head head;
	__u32 flags; /* enum kernel_record_flags */
	__u32 unused;
	__u64 word; /* the rb_thread_t's word at the offset `thread_words[1]` (struct kernel_facts); 0: not readable */
	__u64 thread, ec;
	__u64 thread_word; /* the rb_thread_t's word at the offset `thread_word` (struct kernel_facts) */
	__u64 fs_base;
	__u64 registers[KERNEL_REGISTERS];
	__u32 ec_length, collections_length, frames_length, values_length, native_length,
	    functions_length; /* the lengths of the parts, without the padding up to a multiple of 8 */
};

/*
 * How many kinds of waits the program distinguishes for each thread; a power of two. If no stack was copied for a kind
 * of wait during the last second, the program copies the stack at the next wait of that kind.
 */
#define KERNEL_WAITS 8u

/*
 * Why a thread leaves its CPU: either it begins to wait for something, or it loses the CPU although it is able to run. In
 * the second case, it was preempted, or has called sched_yield().
 */
enum { KERNEL_LEAVES_WAITING, KERNEL_LEAVES_RUNNABLE, KERNEL_LEAVES };

/* The probabilities, multiplied by 2^32 - 1, that the stack of a thread is copied when the thread leaves its CPU. */
struct kernel_chances {
	__u32 of[KERNEL_LEAVES];
};

/* What the program knows about a thread. */
struct kernel_thread {
	__u64 thread; /* the rb_thread_t; 0: not known */
	__u64 out_ns; /* when the thread last left its CPU; 0: the program has not seen the thread leave its CPU */
	__u64 in_ns;  /* when the thread was last given a CPU; 0: not known */
	__u64 woken_ns;
	__u32 waker_pid, waker_tid;
	__u64 copied_ns[KERNEL_WAITS]; /* per kind of wait, when a stack was last copied; index: hash of the kind */
	__u64 runnable_copied_ns;      /* when a stack was last copied because the thread left its CPU, but could run */
	__u64 lost;		       /* the number of records lost since this entry for the thread was made */
	__u64 ended;		       /* the last rb_thread_t whose end was reported for this native thread; 0: none */
	/*
	 * `told_ns` is used only if `thread` is 0. It is the time of the last record KERNEL_UNKNOWN for the native thread.
	 * Before the first such record, it is the time when the program noted that it does not know the Ruby thread, or 0
	 * if the native thread had a Ruby thread that has ended. `times`: the program writes the next record KERNEL_UNKNOWN
	 * at the time `told_ns` + (AGAIN_NS << `times`) or later; in this formula, a `times` above TIMES_MAX counts as
	 * TIMES_MAX (threads.bpf.h).
	 */
	__u64 times, told_ns;
	/*
	 * `found`: not 0 if the program itself has found `thread`. `early`: how many more records of the kind
	 * KERNEL_CLOCK the program may write because the thread is preempted (EARLY_MAX in threads.bpf.h). When the
	 * clock interrupts the thread, `early` becomes 0.
	 */
	__u32 found, early;
};

/* How many records of a process were lost, and why. */
struct kernel_counts {
	__u64 full;    /* the ring had no room for a stack that was copied at a clock interrupt */
	__u64 dropped; /* the ring had no room for a record about a thread that left its CPU or was given a CPU */
	__u64 unread;  /* the thread or its execution context could not be read, because a page was not in memory */
};

/* Rounds a length up to a multiple of 8 bytes, because each part of a record begins at a multiple of 8 bytes. */
static inline __u32 kernel_in_eights(__u32 length)
{
	return (length + 7) & ~7u;
}

#endif
