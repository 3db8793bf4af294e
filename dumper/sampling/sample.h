/*
 * One sample of a thread's stack. A sample says which thread was sampled, and by which source (source.h). The sample
 * also contains the result: a copy of the thread's stack, or the reason why there is no copy.
 */
#ifndef RBDUMP_SAMPLE_H
#define RBDUMP_SAMPLE_H

#include <stdbool.h>
#include <sys/user.h>
#include <time.h>

#include "native/unwind.h"
#include "ruby/frame.h"
#include "sampling/stack_cache.h"
#include "sampling/stack_copy.h"
#include "session/session.h"
#include "target/task.h"

struct source;

/* A thread whose stack is sampled. */
struct subject {
	struct stack_extent extent;
	pid_t tid;
	uint64_t pthread; /* the thread's pthread_t, which is also its thread pointer (FS base); 0: not known */
	struct task task;
};

/*
 * Initializes a subject, and opens the files of its thread in /proc. The function subject_close() closes these files.
 */
void subject_open(struct subject *subject, pid_t pid, pid_t tid, uint64_t thread, uint64_t ec);
void subject_close(struct subject *subject);

/* How the thread of a sample was stopped, if the source stops threads. */
struct sample_stop {
	/* the torn window in which the thread was stopped; NULL: the thread was not in a torn window */
	const struct layout_window *window;
	struct user_regs_struct registers; /* the registers at the last stop, before any step */
	bool has_registers;		   /* whether `registers` are set */
	bool stuck;  /* the thread did not stop in time, and stays traced until rbdump's sampling thread ends */
	bool reaped; /* the thread ended while it was traced, and rbdump has reaped it (tracee.h) */
	/* if `reaped`: the status from waitpid(); waitpid() returns this status only once */
	int status;
	unsigned int steps; /* how many instructions the thread has executed in single steps */
	double pause_us;    /* the longest pause of the thread */
	double step_us;	    /* the total time of all single steps; the thread is paused during a step */
};

/* The result of the search for a sample's stack in the stack cache. */
struct sample_cache {
	struct cached_stack entry; /* the entry of the stack; CACHE_NONE if the stack has no entry */
	/* if CACHE_HIT: the stack was not checked again, and `copy` may lack the stack's objects */
	enum cache_result result;
	/*
	 * rbdump read the stack from a CPU other than the thread's CPU, and the stack matches a cache entry. If only a
	 * stale entry matches, the caller must check that the stack still decodes to the same frames.
	 */
	bool remote;
	bool collecting;      /* whether the garbage collector was running when the stack was copied */
	uint64_t collections; /* how many garbage collections had begun when the stack was copied; 0: not known */
};

/*
 * At most this many bytes of the native stack are copied. This limit is high enough for most methods in C, because a C
 * function usually needs only some hundreds of bytes.
 */
#define NATIVE_COPY_MAX 8192u

/* For NATIVE_WHOLE: at most this many bytes are copied up to the VM stack, and beyond it. */
#define NATIVE_WHOLE_MAX (256u << 10)
#define NATIVE_OUTER_MAX (16u << 10)

/*
 * The data from which native frames are found (native_frames.h). `bytes` and `functions` point to memory of the
 * sampler, or to a record of the kernel. Memory of the sampler is valid until the next sample is taken. A record of the
 * kernel is valid until it is released.
 */
struct native_copy {
	struct unwind_registers registers; /* if `registers.known` is 0, there is no copy */
	const uint8_t *bytes;		   /* the innermost part of the native stack; begins at the stack pointer */
	size_t length;			   /* in bytes; 0: the stack could not be read */
	/*
	 * For NATIVE_WHOLE: the part beyond the VM stack, if the VM stack is in the native stack. Its bytes follow those
	 * of the innermost part.
	 */
	uint64_t outer_start;
	size_t outer_length;
	const uint64_t *functions; /* addresses in functions of the kernel; the innermost function is first */
	size_t nr_functions;
};

/* Returns the registers of a stopped or interrupted thread, for the unwinder. All of these registers are known. */
struct unwind_registers sample_registers(const struct user_regs_struct *registers);

/* How much effort it took to get a sample. */
struct sample_effort {
	unsigned int tries; /* how many times the source tried to get a correct copy of the stack */
	/* for each reason: how many tries before the last try were rejected for this reason */
	uint16_t retried[REASONS];
	double took_us; /* the time that the whole sample took */
	/*
	 * set only by sources that do not stop the thread: the time limit was long enough to copy the stack and to
	 * check the innermost frames
	 */
	bool in_budget;
	bool off_cpu; /* the sampling thread could not move to the CPU of the sampled thread */
};

/* One sample, with its result. */
struct sample {
	const struct source *source;
	pid_t tid;
	uint64_t thread, ec;
	struct timespec time;	 /* when the sample began (CLOCK_REALTIME) */
	uint64_t began_ns;	 /* when the last try began to copy the stack (CLOCK_MONOTONIC) */
	struct stack_copy *copy; /* the last copy of the stack */
	bool copied;		 /* whether `copy` contains the whole stack */
	/*
	 * The thread was interrupted in a torn window, so the innermost frame may be incomplete. This frame is not
	 * shown. If the stack is a cache hit, only the other frames were found in the cache.
	 */
	bool lacks_innermost;
	/*
	 * All frames of `copy` were checked. If the stack is a cache hit, the frames were checked when an earlier
	 * sample had the same stack.
	 */
	bool checked;
	/*
	 * If `checked` is true: the frames of the stack. NULL if the stack must be walked again, or if the frames are
	 * not needed. The frames belong to the sampler.
	 */
	const struct stack *walked;
	bool gone;	    /* the thread has ended, so there is no stack */
	bool no_stack;	    /* the thread has not begun or is about to end, so there is no stack */
	enum reason reason; /* why the source rejects the sample; REASON_NONE: the source accepts it */
	struct sample_stop stop;
	/* set only if a copy of the native stack was wanted (sampler_options.h) and could be made */
	struct native_copy native;
	struct sample_cache cache;
	struct sample_effort effort;
};

/*
 * Allocates the stack copy of a sample. Returns false if there is not enough memory. The function sample_clear() frees
 * the stack copy.
 */
bool sample_init(struct sample *sample, const struct session *session);
void sample_clear(struct sample *sample);

/*
 * Packs a sample: copies the sample and its stack copy into `room`. `room` must have sample_packed_length() bytes, and
 * must be aligned for a struct. The packed sample uses no memory outside of `room`. Do not copy another stack into the
 * packed sample, and do not call sample_clear() for it. The packed sample of a cache hit has no stack copy, but it has
 * the copy of the native stack. The functions of the kernel are not packed.
 *   again  whether the stack will be walked again, although `walked` already contains its frames
 */
size_t sample_packed_length(const struct sample *sample, bool again);
struct sample *sample_pack(const struct sample *sample, bool again, void *room);

/* Rejects a sample, and notes the reason. The sample then has no stack. */
void sample_reject(struct sample *sample, enum reason reason);

#endif
