/*
 * An observation describes one thread in one round of sampling, for example its state and its stack. Streams deliver
 * observations (stream.h). Recordings and experiments are made from observations.
 */
#ifndef RBDUMP_OBSERVATION_H
#define RBDUMP_OBSERVATION_H

#include "check/sample_state.h"
#include "sampling/sample.h"

struct inner_functions;
struct mixed_stack;

/* An observation of one thread in one round of sampling. */
struct observation {
	uint64_t time_ns;   /* when the thread was seen: ns since `origin` (sampling/rounds.h) */
	uint64_t weight_ns; /* the observation stands for the `weight_ns` nanoseconds before `time_ns` */
	uint64_t thread;    /* address of the rb_thread_t; 0: none. `thread` and `tid` together identify a thread */
	pid_t tid;	    /* 0: not known */
	bool no_native;	    /* the Ruby thread has no native thread, so `tid` is 0 */
	uint64_t ractor;    /* the number of the ractor */
	uint64_t name;	    /* the name of the thread (a VALUE of Ruby) */
	bool main;
	enum sample_state state;
	int syscall; /* for SAMPLE_BLOCKED: the number of the system call; -1: none, or not known */
	/*
	 * The pid and tid, in rbdump's pid namespace, of the thread that ended this thread's wait; 0: no such thread,
	 * or not known.
	 */
	pid_t waker_pid, waker_tid;
	bool same; /* the stack is the same as in the thread's previous observation, so `sample` is NULL */
	/*
	 * The sample that contains the stack. NULL if `same`, `lost` or `of_kept` is set, or if `stack` is a cache hit.
	 * But in the queue, the observation of a cache hit can have a sample. This sample contains the native stack,
	 * but no stack copy. If `gone` or `no_stack` is set in the sample, the sample has no stack.
	 */
	struct sample *sample;
	/*
	 * The stack is missing, so `sample` is NULL: the queue had no room for the sample
	 * (sampling/observation_queue.h), or records from the kernel were lost (sampling/time_line.h).
	 */
	bool lost;
	/*
	 * The thread sleeps, and no stack of this thread has been added to the queue yet. If the queue has no room for
	 * the sample, the observation is not added to the queue. In this case, a later observation also stands for the
	 * time of this observation.
	 */
	bool optional;
	/*
	 * Only the kernel stream sets the next three members. `keeps`: the observation only delivers a stack that must
	 * be stored in slot `kept`. Such an observation does not count as a sample. `of_kept`: the stack of the
	 * observation is the stack in slot `kept`. If `of_kept` is set and `kept` is TIME_NONE, the observation has no
	 * stack (sampling/time_line.h).
	 */
	bool keeps, of_kept;
	uint32_t kept;
	bool estimated; /* the stack was copied before or after the time of this observation (time_line.h) */
	const struct inner_functions
	    *native;			 /* the native frames of the stack (sampling/native_frames.h); NULL: none */
	const struct mixed_stack *mixed; /* all frames in their order (sampling/mixed_stack.h); NULL: not wanted */
	struct cached_stack stack;	 /* the entry of the stack in `cache`; CACHE_NONE if the stack has no entry */
	struct stack_cache *cache;
	uint64_t collections; /* how many garbage collections had begun at the time of the observation; 0: not known */

	/*
	 * The number of late samples: the samples that were missed just before this sample, plus this sample if it is
	 * late.
	 */
	uint32_t late;
	/* How many of the late samples were missed, and so were not taken at all. */
	uint32_t missed;
	/* How many samples were skipped just before this sample because of the CPU time limit. */
	uint32_t skipped;
	/* The list of threads could not be read, so the observation has no thread. */
	bool no_list;
	/*
	 * This observation ends the round. If the round was quiet, and one thread ran in the round, this observation is
	 * also about the thread that ran. In all other rounds, the observation that ends the round has no thread.
	 */
	bool end_of_round;
	/* The round was quiet: all threads without an observation in this round have slept since the previous round. */
	bool quiet;
};

#endif
