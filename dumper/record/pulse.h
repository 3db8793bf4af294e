/*
 * The pulse of a recording: a thread of its own that looks at every Ruby thread of a target, so many times a second,
 * and hands on what it saw. Names are found elsewhere, meanwhile (runs.h).
 *
 * In each round the list of threads is read, then each thread: what Ruby says of it, what the kernel says, its stack.
 * One that sleeps is copied as it is; one that sleeps on since the last round is not copied again; one that runs is
 * stopped, or read as the mode has it.
 *
 * A round in which nothing but the thread that runs can have moved is a quiet one: all others sleep, and the kernel has
 * given none of them a CPU since (wakeups.h); no thread has been added, and the GVL is where it was (thread_words.h).
 * Then the one stack is all that is read, and the words that tell this come with it.
 */
#ifndef RBDUMP_PULSE_H
#define RBDUMP_PULSE_H

#include "error.h"
#include "recording/profile.h"
#include "sample/sampler.h"
#include "session/session.h"
#include "vm/threads.h"

/* One thread, in one round. */
struct beat {
	uint64_t time_ns;      /* since the origin: when it was seen, */
	uint64_t weight_ns;    /* and for how long before that it stands */
	uint64_t thread;       /* its rb_thread_t: with the tid, who it is */
	pid_t tid;	       /* 0: not known */
	bool no_native;	       /* Ruby has none for it: then there is no tid */
	uint64_t ractor, name; /* number; VALUE */
	bool main;
	enum profile_state state;
	int syscall;	       /* of PROFILE_BLOCKED; -1 */
	bool same;	       /* the stack is what it was in its last beat; there is no sample */
	struct sample *sample; /* else, if the stack is not known; it may be gone, or have no stack */
	size_t slot;
	struct known_stack stack; /* which one it is of those that are kept; KNOWN_NONE */
	struct known *known;	  /* those */
	uint64_t collections;	  /* how many have begun, as of its round; 0: not known */
	uint32_t late; /* how many samples were late: its own, if it is, and those that were missed before its round */
	uint32_t missed; /* those of them that were missed */
	uint32_t
	    skipped;  /* how many samples were not taken before it: rounds that the limit of CPU time did not allow */
	bool no_list; /* there is no thread, and the list of threads could not be read */
	bool end_of_round; /* there is no thread: the round is over */
	bool quiet;	   /* nor has any moved since the round before that had no beat in this one */
};

struct pulse;

struct pulse_options {
	double rate;		 /* rounds a second */
	enum sample_mode mode;	 /* for threads that run: MODE_PAUSED or MODE_UNPAUSED */
	struct timespec origin;	 /* CLOCK_MONOTONIC */
	const _Atomic int *stop; /* ends it when it is set */
	double max_cpu;		 /* the share of one CPU that it may take, shared by so many others that sample: */
	const _Atomic uint32_t *samplers;
};

/* The session must outlive it. NULL if out of memory. */
struct pulse *pulse_create(const struct session *session, const struct pulse_options *options);
void pulse_destroy(struct pulse *pulse); /* NULL is fine; it must have ended */

/* Begins. Fails if there can be no thread. */
struct error *pulse_begin(struct pulse *pulse);

/*
 * Waits for the next beat; valid until pulse_done(). NULL when it has ended, or, with *timed_out set, if there was none
 * for a tenth of a second.
 */
const struct beat *pulse_next(struct pulse *pulse, bool *timed_out);
void pulse_done(struct pulse *pulse);

/*
 * Waits for its end. Returns whether it is to begin again: a thread of the target did not stop, and is given up by the
 * kernel only with the thread that has tried (target/tracee.h).
 */
bool pulse_end(struct pulse *pulse);

/* Ends it, whatever the options' stop says. */
void pulse_stop(struct pulse *pulse);

/* From now on no round begins before the samples of the last one were given back: what they refer to does not last. */
void pulse_keep_pace(struct pulse *pulse);

#endif
