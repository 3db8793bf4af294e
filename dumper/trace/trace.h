/*
 * A trace: what one look at a Ruby process found. The only thing that render/ sees; it outlives the target.
 *
 * All strings are valid UTF-8, owned by the trace, and may be NULL where it says so. Field names and values are those
 * of schema 1 of the JSON output.
 */
#ifndef RBDUMP_TRACE_H
#define RBDUMP_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "validate/validate.h"

enum trace_frame_kind { TRACE_RUBY, TRACE_CFUNC, TRACE_UNREADABLE };

struct trace_frame {
	enum trace_frame_kind kind;
	const char *label;	   /* as that Ruby prints it; NULL if unreadable */
	const char *name;	   /* qualified by class; NULL if unreadable */
	const char *path;	   /* NULL if there is none */
	const char *absolute_path; /* NULL if there is none (eval) */
	bool has_line;
	int64_t line;	    /* may be 0 or negative: eval takes any number */
	int64_t first_line; /* of its code, or of what it was called by: for those that have no line */
	bool compiled;	    /* a JIT may run it: its line is known only while it calls something */
	uint64_t address;   /* of the control frame, in the target */
	enum reason reason; /* for TRACE_UNREADABLE */
};

enum trace_state {
	STATE_UNKNOWN,
	STATE_RUNNING,
	STATE_WAITING_GVL,
	STATE_SLEEPING,
	STATE_SLEEPING_FOREVER,
	STATE_BLOCKED,
	STATE_DEAD,
	STATE_SUSPENDED, /* of a fiber: it does not run, whatever its thread does */
};

/* The stack that a thread is at, or that of a fiber that it does not run. */
struct trace_thread {
	uint64_t id;	  /* address of the rb_thread_t: a thread and its fibers have the same */
	pid_t tid;	  /* 0 if not known */
	uint64_t ractor;  /* number; the first has 1 */
	const char *name; /* NULL if it has none */
	bool main;
	enum trace_state state;
	enum verdict verdict;
	enum reason reason;
	const char *window; /* the torn window that it was stopped in, if it ran: "vm_push_frame"; NULL if in none */
	uint64_t fiber;	    /* address of the fiber whose stack this is; 0 if not known */
	const char *fiber_state; /* NULL if not known */
	bool suspended;		 /* it is not the one that the thread runs */
	bool ended;		 /* its thread has ended, and left it behind: tid and ractor are not known */
	uint64_t resumed_by;	 /* address of the fiber that has resumed it; 0 if none has */
	const char *waits_in;	 /* the hook of its scheduler that it waits in: "Scheduler#io_wait"; NULL if in none */
	const char *waits_for;	 /* what has called that: "IO#read"; NULL if not known */
	struct trace_frame *frames; /* innermost first */
	size_t nr_frames;
};

/* Whether all threads were found, or all suspended fibers; if not, why. */
enum list_missing {
	LIST_COMPLETE,
	LIST_NOT_KNOWN, /* of this Ruby it is not known where they are */
	LIST_BROKEN,
	LIST_TOO_LONG,
	LIST_OUT_OF_TIME,
	LIST_HEAP_CUT,
	LIST_MISSED,
};

enum layout_source {
	LAYOUT_BY_BUILD_ID,
	LAYOUT_BY_VERSION,
	LAYOUT_GENERATED,
	LAYOUT_GIVEN,
	LAYOUT_NEAREST, /* it is for other releases: there is none for this one */
};

/* Who says which version it is. */
enum version_source {
	VERSION_OF_RUBY,   /* Ruby's own constants */
	VERSION_IN_MEMORY, /* other memory of a core */
	VERSION_BY_NAME,   /* the name of the libruby that was mapped */
	VERSION_OF_LAYOUT, /* the layout: that of the very build, or that the user gave */
	VERSION_GIVEN,	   /* the user, and nothing else */
	VERSION_FITS,	   /* nobody: of all layouts, some fit */
};

/* The most layouts that are named if nothing tells the version. */
#define TRACE_FITS 8

/* What a core file tells beyond that. */
struct trace_core {
	const char *file;
	const char *program;	 /* what the kernel called the process; NULL if not known */
	int signal;		 /* that ended the process; 0 if none did */
	const char *signal_name; /* "SIGSEGV"; NULL if it has none */
	pid_t tid;		 /* the thread that died first */
	bool has_fault;
	uint64_t fault;	      /* the address that the signal is about */
	const char *lacks[2]; /* sentences about what is not there */
	size_t nr_lacks;
};

struct trace {
	pid_t pid;
	enum version_source version_source;
	const char *ruby_version, *ruby_description, *arch;
	const char *versions_fit[TRACE_FITS]; /* of VERSION_FITS: "3.2.3", "3.1.2 3.1.4"; newest first */
	size_t nr_versions_fit;
	enum layout_source layout_source;
	const char *layout_releases; /* of LAYOUT_NEAREST: what it is for, "3.3.7 3.3.11" or "3.3.0"; else NULL */
	const char *layout_file;     /* NULL if it was not kept in a file */
	const char *layout_build_id; /* of the ELF that Ruby is in; NULL if it has none */
	unsigned int pauses; /* how often the target was copied while it stood still; 0 if it was read without */
	double pause_us;     /* from the first thread's stop to the last one's going on, all pauses together */
	bool of_core;	     /* then it was not stopped, and `core` is set */
	struct trace_core core;
	bool gc_known, gc_running;
	struct trace_thread *threads; /* each followed by its suspended fibers; those of ended threads come last */
	size_t nr_threads;
	enum list_missing threads_missing, fibers_missing;
	uint64_t nr_fibers_missing; /* for LIST_MISSED */

	struct trace_pool *pool; /* what owns the strings */
	size_t pool_size;	 /* bytes in all of it */
};

struct trace *trace_create(void);	 /* NULL if out of memory */
void trace_destroy(struct trace *trace); /* NULL is fine */

/* The most bytes of strings that a trace holds. */
#define TRACE_STRINGS_MAX (256u * 1024 * 1024)

/* A copy of `text` that lives as long as the trace; NULL if `text` is NULL, or memory or the limit is reached. */
const char *trace_string(struct trace *trace, const char *text);

/* The names that JSON has for these. */
const char *trace_state_name(enum trace_state state);
const char *trace_layout_source_name(enum layout_source source);
const char *trace_version_source_name(enum version_source source);
const char *trace_frame_kind_name(enum trace_frame_kind kind);

/* Why some may be missing: a short name for programs, a sentence for people; NULL for LIST_COMPLETE. */
const char *trace_missing_name(enum list_missing missing);
const char *trace_missing_text(enum list_missing missing);

/* Orders the threads by a rank that each has; those of the same rank stay as they are. False if out of memory. */
bool trace_order(struct trace *trace, const size_t *ranks);

/* EXIT_COMPLETE or EXIT_PARTIAL of error.h. */
int trace_exit_status(const struct trace *trace);

#endif
