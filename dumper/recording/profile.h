/*
 * A profile: the contents of one or more recordings, in memory. The code in report/ filters a profile, and writes it in
 * the format that the user has chosen.
 *
 * All strings are valid UTF-8 without NUL, and are owned by the profile. Times are in nanoseconds since `start`.
 */
#ifndef RBDUMP_PROFILE_H
#define RBDUMP_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "check/sample_state.h"
#include "check/validate.h"

/*
 * Counts of the samples of one process or of all processes. The number of samples that were due is samples + missed +
 * skipped.
 */
struct profile_counts {
	uint64_t samples;			   /* how many samples were taken; each sample is of one thread */
	uint64_t verdicts[VERDICT_UNREADABLE + 1]; /* counts by verdict: complete, truncated, torn, unreadable */
	uint64_t late;				   /* samples that were taken too late, plus `missed` */
	uint64_t missed;  /* samples that were due, but were missed because rbdump was not ready in time */
	uint64_t skipped; /* samples that were due, but were skipped because of rbdump's CPU time limit */
};

struct profile_process {
	pid_t pid, parent;
	uint64_t started;	      /* start time in clock ticks since boot; unique together with the pid */
	const char *command;	      /* the name of the process in the kernel (comm) */
	const char *ruby_version;     /* NULL if not known */
	const char *ruby_description; /* NULL if not known */
	/*
	 * If the process was read through the layout of another release: the releases that this layout is for, such as
	 * "3.3.7 3.3.11" (see layout_releases()). Otherwise NULL.
	 */
	const char *layout_releases;
	const char *mode;   /* the mode in which the process was sampled; NULL (older recordings): the profile's mode */
	const char *cgroup; /* the path of the cgroup, relative to rbdump's cgroup namespace; NULL if not known */
	uint64_t begin_ns;  /* when rbdump first looked at the process */
	uint64_t end_ns;    /* when rbdump last looked at the process */
	bool has_status;    /* rbdump has started the process, and the process has ended */
	int status;	    /* if `has_status`: the status, as waitpid() reports it */
	struct profile_counts counts;
};

struct profile_thread {
	uint32_t process; /* index */
	pid_t tid;	  /* 0 if the tid is not known */
	const char *name; /* NULL if the thread has no name */
	bool main;
	uint64_t ractor; /* the number of the thread's ractor; the first ractor has number 1 */
	/*
	 * Each thread of a capture has its own serial, even if the thread has got the tid of a thread that has ended. The
	 * upper 32 bits are the same for all threads of a capture. 0: not known.
	 */
	uint64_t serial;
};

enum profile_kind {
	PROFILE_RUBY,
	PROFILE_CFUNC,
	PROFILE_MARK,	/* a mark (not a method), such as "(torn: window)", "(truncated)" or "(starting)" */
	PROFILE_NATIVE, /* a native function; its `path` is the path of its ELF file, or "[kernel]" */
};

/* A method, a block or similar code. Frames with the same function can be merged. */
struct profile_function {
	enum profile_kind kind;
	const char *name;  /* the name to show, qualified by class: "block in Foo#bar" */
	const char *label; /* the label as the process's Ruby prints it; if there is no label, the same as `name` */
	const char *path;  /* NULL if there is no path; always NULL for a C function */
	const char *absolute_path; /* NULL if there is no absolute path, as for code from eval */
	int64_t first_line;	   /* the first line of the function's code; 0 if not known */
};

struct profile_frame {
	uint32_t function; /* index */
	int64_t line;	   /* for a C function, the line at which it was called; 0 if the line is not known */
};

/*
 * A stack, as a node of a tree. The node contains the innermost frame of the stack. The parent node is the stack of
 * that frame's caller. Node 0 is the root and has no frame.
 */
struct profile_node {
	uint32_t parent; /* index of the parent; less than the index of this node */
	uint32_t frame;
};

/* A thread that has woken other threads. */
struct profile_waker {
	pid_t pid, tid;
	const char *name; /* the name of the waker's process in the kernel (comm); NULL if not known */
};

/* Consecutive samples in which a thread had the same stack and state. */
struct profile_span {
	uint64_t start_ns;  /* the start of the time that the span covers */
	uint64_t weight_ns; /* the wall-clock time that the span covers; can differ from `count` divided by the rate */
	uint32_t count;	    /* number of samples, at least 1 */
	uint32_t thread;    /* index */
	uint32_t node;	    /* index of the stack's node; 0 if the stack is not known */
	int16_t syscall;    /* for SAMPLE_BLOCKED: number of the system call; -1 if not known */
	uint8_t state;	    /* enum sample_state */
	uint8_t verdict;    /* enum verdict */
	bool estimated;	    /* the stack was copied at another time, and chosen for this span (sampling/time_line.h) */
	/*
	 * The index of the waker that ended the wait, plus 1. 0 if the waker is not known, if the wait did not end with
	 * this span, if an interrupt ended the wait, or if the thread did not wait.
	 */
	uint32_t waker;
};

struct profile {
	struct timespec start; /* CLOCK_REALTIME */
	uint64_t duration_ns;
	double rate;	  /* the requested rate of the first recording, in samples per second */
	const char *mode; /* "kernel", "paused" or "unpaused" */
	const char *tool; /* the program that made the first recording: "rbdump 0.1.0" */
	bool cut;	  /* at least one recording is incomplete: it was not finished, or is damaged */

	struct profile_process *processes;
	struct profile_thread *threads;
	struct profile_function *functions;
	struct profile_frame *frames;
	struct profile_node *nodes;
	struct profile_waker *wakers;
	struct profile_span *spans; /* the spans of each thread are sorted by start_ns, and do not overlap */
	size_t nr_processes, nr_threads, nr_functions, nr_frames, nr_nodes, nr_wakers, nr_spans;
	struct profile_counts counts; /* of all processes */

	struct profile_store *store; /* contains the strings, and tables that are used to find equal elements */
};

struct profile *profile_create(void);	       /* NULL if there is not enough memory */
void profile_destroy(struct profile *profile); /* NULL is fine */

/* Returns how many bytes of memory the profile uses. The memory of its processes and threads is not counted. */
size_t profile_bytes(const struct profile *profile);

/*
 * Returns a copy of a text; NULL if `text` is NULL, or if there is not enough memory. The copy lives as long as the
 * profile. Equal texts share one copy.
 */
const char *profile_string(struct profile *profile, const char *text);

/*
 * Each of the next three functions adds an element if there is no equal element yet. Each function returns the index of
 * the new or equal element; UINT32_MAX if there is not enough memory. Strings must come from profile_string().
 */
uint32_t profile_add_function(struct profile *profile, const struct profile_function *function);
uint32_t profile_add_frame(struct profile *profile, uint32_t function, int64_t line);
uint32_t profile_add_node(struct profile *profile, uint32_t parent, uint32_t frame);

/*
 * Adds a waker if there is no equal waker yet. Returns the index of the new or equal waker; UINT32_MAX if out of
 * memory. The name must come from profile_string().
 */
uint32_t profile_add_waker(struct profile *profile, const struct profile_waker *waker);

/*
 * The next three functions always add an element. If there is not enough memory, profile_add_span() returns false. The
 * other two functions return the index of the element; UINT32_MAX if there is not enough memory. Strings must come from
 * profile_string().
 */
uint32_t profile_add_process(struct profile *profile, const struct profile_process *process);
uint32_t profile_add_thread(struct profile *profile, const struct profile_thread *thread);
bool profile_add_span(struct profile *profile, const struct profile_span *span);

/* Returns the index of the first process that was added with this pid and start time; UINT32_MAX if not found. */
uint32_t profile_find_process(const struct profile *profile, pid_t pid, uint64_t started);

/*
 * Finds `thread` in the profile. `thread` can come from another recording. Returns the index in the profile; UINT32_MAX
 * if not found. A thread of the profile is the same thread if it has the same process and the same serial. If the
 * profile has no such thread, but the tid of `thread` is known, finds the first thread that was added with the same
 * process, tid, name, ractor and `main`. But if the serials show that the found thread and `thread` are from one
 * capture, they are different threads, and the function returns UINT32_MAX.
 */
uint32_t profile_find_thread(const struct profile *profile, const struct profile_thread *thread);

/* Replaces a thread. If there is not enough memory, returns false and changes nothing. */
bool profile_replace_thread(struct profile *profile, uint32_t index, const struct profile_thread *thread);

/*
 * The share of samples that the CPU time limit allowed: samples / (samples + skipped). The share is 1 if the limit was
 * never reached.
 */
double profile_share_taken(const struct profile_counts *counts);

/* Adds the numbers of `more` to `counts`. */
void profile_count(struct profile_counts *counts, const struct profile_counts *more);

/*
 * How many samples were due, whether they were taken or not. Returns UINT64_MAX if the sum of the counts is greater
 * than UINT64_MAX, which can happen in a damaged recording.
 */
uint64_t profile_due(const struct profile_counts *counts);

/* Returns the share of late and missed samples among all samples that were due (0 to 1); 0 if no samples were due. */
double profile_late_share(const struct profile_counts *counts);

#endif
