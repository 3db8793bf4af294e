/*
 * Taking one stack of a running target: the protocols that rbdump knows, and what each of them saw.
 *
 * A sampler belongs to one thread of rbdump, the one that calls sampler_enter(): it takes that thread to the CPU that
 * the mode reads from, and ahead of what runs there.
 */
#ifndef RBDUMP_SAMPLER_H
#define RBDUMP_SAMPLER_H

#include <stdbool.h>
#include <sys/user.h>
#include <time.h>

#include "sample/known.h"
#include "sample/shot.h"
#include "session/session.h"
#include "target/task.h"

enum sample_mode {
	/* As a profiler does that knows no better: context, frames and values by reads of their own, no check that they
	   belong together. From another CPU than the thread's, as the next two. */
	MODE_UNPAUSED_NAIVE,
	/* The same in one system call. */
	MODE_UNPAUSED_ONCE,
	/* All of it twice in one system call; what differs is tried again until the time is up. */
	MODE_UNPAUSED_DOUBLE,
	/* The same, from the CPU that the thread runs on: while rbdump reads there, the thread waits for its turn. */
	MODE_UNPAUSED,
	/* The thread is stopped and its stack copied once. */
	MODE_PAUSED_NAIVE,
	/* The same, but not in a torn window; tried again if it contradicts itself. It is read once before, in vain, so
	   that the pause is shorter. */
	MODE_PAUSED,
	/* Nothing is done: what the target does by itself. */
	MODE_UNDISTURBED,
	SAMPLE_MODES
};

/* "unpaused-naive" and so on. */
const char *sample_mode_name(enum sample_mode mode);
bool sample_mode_pauses(enum sample_mode mode);
/* Whether the mode reads a running thread again until two copies agree, as long as the budget lasts. */
bool sample_mode_tries(enum sample_mode mode);
/* Whether the mode takes a stack as it was read, without a look whether it fits together. */
bool sample_mode_naive(enum sample_mode mode);

/* What MODE_PAUSED does with a thread that was stopped in a torn window. */
enum on_torn {
	ON_TORN_STEP,	/* steps it out, then copies */
	ON_TORN_AGAIN,	/* lets it go on, and stops it again a moment later */
	ON_TORN_REPORT, /* copies, and calls it torn */
	ON_TORN_DROP,	/* does not copy */
	ON_TORN_WAYS
};

/* "step" and so on. */
const char *on_torn_name(enum on_torn on_torn);

struct sampler_options {
	long budget_us; /* for all tries of one sample */
	enum on_torn on_torn;
};

/* A thread whose stack is sampled. */
struct subject {
	struct shot_aim aim;
	pid_t tid;
	uint64_t pthread; /* its pthread_t, which is the thread pointer of that native thread; 0: not known */
	struct task task;
};

/* Opens what sampler_take() needs of a thread; closes it again. */
void subject_open(struct subject *subject, pid_t pid, pid_t tid, uint64_t thread, uint64_t ec);
void subject_close(struct subject *subject);

/* What came of one sample. */
struct sample {
	enum sample_mode mode;
	pid_t tid;
	uint64_t thread, ec;
	struct timespec time;	   /* CLOCK_REALTIME, when it was begun */
	uint64_t began_ns;	   /* the same by CLOCK_MONOTONIC; anew with each try */
	enum reason reason;	   /* what the protocol has against it; REASON_NONE: it stands behind it */
	bool gone;		   /* the thread has ended: there is nothing */
	bool reaped;		   /* it ended while it was traced: nobody else is told how (target/tracee.h) */
	int status;		   /* then: as waitpid() gives it */
	bool stuck;		   /* it did not stop in time, and is still traced: the calling thread has to end */
	bool off_cpu;		   /* rbdump may not run where the thread does */
	bool no_stack;		   /* the thread has not begun, or is about to end: there is nothing, either */
	bool copied;		   /* whether `shot` holds the stack */
	bool in_budget;		   /* unpaused: it was copied, and its innermost frames judged, before that was over */
	struct shot *shot;	   /* as copied last */
	struct known_stack stack;  /* which one it is of those that are kept; KNOWN_NONE */
	bool glanced;		   /* it was read from elsewhere, since it is not new; if it is not right, either: it
				      may not be what it was when it was */
	bool collecting;	   /* where stacks are kept: Ruby was in its garbage collector */
	uint64_t collections;	   /* there, too: how many had begun; 0: not known */
	enum known_as known_as;	   /* as right: nothing but the stack was copied, and nothing checked */
	unsigned int tries, steps; /* tries: how often it was copied, or the thread stopped */
	uint16_t retried[REASONS]; /* tries that were not good enough, and were followed by another */
	double took_us, pause_us, step_us; /* all of it; the longest pause; what stepping took of the pauses */
	bool has_registers;
	struct user_regs_struct registers;  /* where the thread was stopped (last), before any step */
	const struct layout_window *window; /* the torn window it was stopped in; NULL if none */
};

/* Makes room for a sample's shot. False if out of memory. */
bool sample_init(struct sample *sample, const struct session *session);
void sample_clear(struct sample *sample);

/* Takes what was copied out of a sample: nobody stands behind it. */
void sample_reject(struct sample *sample, enum reason reason);

struct sampler;
struct sampler *sampler_create(const struct session *session, const struct sampler_options *options);
void sampler_destroy(struct sampler *sampler); /* NULL is fine */

/*
 * From now on, that thread of rbdump's stays off the target's CPU as well: it works on the samples. The CPUs that it
 * may run on are those of the thread that has called sampler_create(); it gets them back at the end.
 */
void sampler_set_worker(struct sampler *sampler, pid_t worker);

/* From now on, stacks that are known to be right are recognized. They must outlive the sampler. */
void sampler_use_known(struct sampler *sampler, struct known *known);

/*
 * Called by the thread that will take the samples, before the first of a mode: it goes before others, where it may, and
 * runs on any CPU again. Returns whether it goes before others.
 */
bool sampler_enter(struct sampler *sampler);

/*
 * Takes one sample; never fails: what went wrong is in it. MODE_UNDISTURBED takes none.
 *   seen  whether the caller has just asked for the thread's task: it is not asked again whether it has ended
 */
void sampler_take(struct sampler *sampler, enum sample_mode mode, struct subject *subject, bool seen,
		  struct sample *sample);

/*
 * Takes one of a thread that is asleep, without a pause: the caller knows that it has not run from before the call
 * until after it, or throws the sample away.
 */
void sampler_take_asleep(struct sampler *sampler, struct subject *subject, struct sample *sample);

#endif
