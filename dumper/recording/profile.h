/*
 * A profile: what one or more recordings hold, in memory. What report/ sees, filters, and writes in the formats of
 * others.
 *
 * All strings are valid UTF-8 without NUL, owned by the profile. Times are in nanoseconds since `start`.
 */
#ifndef RBDUMP_PROFILE_H
#define RBDUMP_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "validate/validate.h"

/* What a thread was doing when it was sampled. */
enum profile_state {
	PROFILE_CPU,	  /* running: its own code, or C code with or without the GVL */
	PROFILE_GC,	  /* running the garbage collector */
	PROFILE_GVL,	  /* could run, if it had the GVL */
	PROFILE_BLOCKED,  /* in a system call that waits for something from outside */
	PROFILE_SLEEPING, /* sleeps, or waits for another thread: sleep, Queue#pop, Mutex#lock, Thread#join */
	PROFILE_STARTING, /* its process has no Ruby that could be looked at, yet */
	PROFILE_STOPPED,  /* stopped by a signal (SIGSTOP), or by another tracer */
	PROFILE_PAGING,	  /* waits for a page of its memory: in the kernel, in no system call */
	PROFILE_STATES
};

/* "cpu", "gc", "gvl", "blocked", "sleeping", "starting", "stopped", "paging": the names that all formats have. */
const char *profile_state_name(enum profile_state state);
/* False if there is none of that name. */
bool profile_state_parse(const char *name, enum profile_state *ret);

/* What came of the samples of a process, or of all of them. */
struct profile_counts {
	uint64_t samples; /* of single threads */
	uint64_t
	    verdicts[VERDICT_UNREADABLE + 1]; /* how many of these had which: complete, truncated, torn, unreadable */
	uint64_t late;	  /* samples that were taken too late, or not at all since one before took too long */
	uint64_t missed;  /* those of them that were not taken at all: samples + missed + skipped were due */
	uint64_t skipped; /* samples that were due, and not taken: rbdump would have taken more CPU time than it may */
};

struct profile_process {
	pid_t pid, parent;
	uint64_t started;	      /* in clock ticks since the system started: with the pid, one process for ever */
	const char *command;	      /* what the kernel calls it */
	const char *ruby_version;     /* NULL if it never was a Ruby */
	const char *ruby_description; /* NULL, too */
	const char *layout_releases; /* what the layout is for that it was read through ("3.3.7 3.3.11"), if that is not
					for this release; else NULL */
	uint64_t begin_ns, end_ns;   /* when it was first and last looked at */
	bool has_status;	     /* rbdump has started it, and it has ended */
	int status;		     /* then: as waitpid() gives it */
	struct profile_counts counts;
};

struct profile_thread {
	uint32_t process; /* index */
	pid_t tid;	  /* 0 if not known */
	const char *name; /* NULL if it has none */
	bool main;
	uint64_t ractor; /* number; the first has 1 */
};

enum profile_kind {
	PROFILE_RUBY,
	PROFILE_CFUNC,
	PROFILE_MARK, /* no method: "(torn: window)", "(truncated)", "(starting)" */
};

/* A method, block or the like: what frames are merged by. */
struct profile_function {
	enum profile_kind kind;
	const char *name;	   /* to be shown: qualified by class, "block in Foo#bar" */
	const char *label;	   /* as that Ruby prints it; the name, if it prints none */
	const char *path;	   /* NULL if there is none; of a C function NULL: it is in no file */
	const char *absolute_path; /* NULL if there is none (eval) */
	int64_t first_line;	   /* of its code; 0 if not known */
};

struct profile_frame {
	uint32_t function; /* index */
	int64_t line;	   /* 0 if not known; of a C function that of its caller */
};

/* A stack is a node of a tree: its innermost frame, and the node of its caller. Node 0 is the root, and has no frame.
 */
struct profile_node {
	uint32_t parent; /* less than its own index */
	uint32_t frame;
};

/* Samples in a row in which a thread was seen with one stack, in one state. */
struct profile_run {
	uint64_t start_ns;  /* the time that it stands for: from here on, */
	uint64_t weight_ns; /* so long: real time, whatever the rate */
	uint32_t count;	    /* samples; at least 1 */
	uint32_t thread;    /* index */
	uint32_t node;	    /* index; 0: no stack is known */
	int16_t syscall;    /* of PROFILE_BLOCKED: its number; -1 if not known */
	uint8_t state;	    /* enum profile_state */
	uint8_t verdict;    /* enum verdict */
};

struct profile {
	struct timespec start; /* CLOCK_REALTIME */
	uint64_t duration_ns;
	double rate;	  /* samples a second, as asked for; of several recordings, the first's */
	const char *mode; /* "paused", "unpaused" */
	const char *tool; /* "rbdump 0.1.0", that has made the recording */
	bool cut;	  /* a recording ended in the middle: it was not finished, or cut short */

	struct profile_process *processes;
	struct profile_thread *threads;
	struct profile_function *functions;
	struct profile_frame *frames;
	struct profile_node *nodes;
	struct profile_run *runs; /* those of one thread ascend by start_ns, and do not overlap */
	size_t nr_processes, nr_threads, nr_functions, nr_frames, nr_nodes, nr_runs;
	struct profile_counts counts; /* of all processes */

	struct profile_store *store; /* what owns all that */
};

struct profile *profile_create(void);	       /* NULL if out of memory */
void profile_destroy(struct profile *profile); /* NULL is fine */

/*
 * What hashes of what is read from a recording begin with: not known to who has made it, or he could have all that is
 * in it in one place. The same while rbdump runs.
 */
uint64_t profile_hash_seed(void);

/* How much memory it has taken for all but processes and threads. */
size_t profile_bytes(const struct profile *profile);

/* A copy of a string that lives as long as the profile: the same one for the same text. NULL if out of memory. */
const char *profile_string(struct profile *profile, const char *text);

/* These add one, or find it if it is there already; UINT32_MAX if out of memory. Strings must be the profile's own. */
uint32_t profile_add_function(struct profile *profile, const struct profile_function *function);
uint32_t profile_add_frame(struct profile *profile, uint32_t function, int64_t line);
uint32_t profile_add_node(struct profile *profile, uint32_t parent, uint32_t frame);

/* These add one more. Strings must be the profile's own. */
uint32_t profile_add_process(struct profile *profile, const struct profile_process *process);
uint32_t profile_add_thread(struct profile *profile, const struct profile_thread *thread);
bool profile_add_run(struct profile *profile, const struct profile_run *run);

/* The process that was added with that pid and start, or the first of them; UINT32_MAX if there is none. */
uint32_t profile_find_process(const struct profile *profile, pid_t pid, uint64_t started);

/* The first thread that was added with the same process, tid, name, and being the main one or not; UINT32_MAX. */
uint32_t profile_find_thread(const struct profile *profile, const struct profile_thread *thread);

/* Another one in the place of a thread. False if out of memory: then it is as it was. */
bool profile_replace_thread(struct profile *profile, uint32_t index, const struct profile_thread *thread);

/* Which part of the samples that the limit of CPU time is about were taken; 1 if it was never reached. */
double profile_share_taken(const struct profile_counts *counts);

/* Adds what came of samples to that of others. */
void profile_count(struct profile_counts *counts, const struct profile_counts *more);

/* What share of the samples that were due were late, or missed: from 0 to 1. 0 if none was due. */
double profile_late_share(const struct profile_counts *counts);

/* The name of an x86_64 system call: "read"; NULL if it is not known. */
const char *profile_syscall_name(int number);

#endif
