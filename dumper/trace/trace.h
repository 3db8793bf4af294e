/*
 * A trace: the stacks and other facts that rbdump has read from a Ruby process at one time. The code that writes a stack
 * dump (render/render.h) reads only traces. A trace stays valid after the target is closed.
 *
 * All strings are valid UTF-8 and owned by the trace. A string can be NULL only where this file says so. rbdump can
 * write most of these facts as JSON: see doc/json.md.
 */
#ifndef RBDUMP_TRACE_H
#define RBDUMP_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "check/validate.h"
#include "layout/layout.h"
#include "trace/details.h"
#include "trace/waits.h"

enum trace_frame_kind { TRACE_RUBY, TRACE_CFUNC, TRACE_UNREADABLE, TRACE_NATIVE };

struct trace_frame {
	enum trace_frame_kind kind;
	/*
	 * The frame's label, as this Ruby prints it; NULL if unreadable. For TRACE_NATIVE: "FUNCTION+0xOFFSET"; if the
	 * frame is inlined, only "FUNCTION".
	 */
	const char *label;
	/*
	 * The label with the class before the method's name; NULL if unreadable. For TRACE_NATIVE: the function; NULL if
	 * not known.
	 */
	const char *name;
	const char *path;	   /* NULL if the code has no path */
	const char *absolute_path; /* NULL if the code has no absolute path (eval) */
	bool has_line;
	int64_t line; /* line number; can be 0 or negative, because eval accepts any line number */
	/* The first line of the frame's code. For a C function: the first line of the calling Ruby code. */
	int64_t first_line;
	/*
	 * The frame might be running JIT-compiled code. If so, the line is reliable only while the frame is calling
	 * another method.
	 */
	bool compiled;
	uint64_t address;   /* address of the control frame in the target; for TRACE_NATIVE, the code's address */
	enum reason reason; /* for TRACE_UNREADABLE: why the frame is unreadable */
	/*
	 * A number that identifies the frame's code and method. Frames with the same number have the same label and
	 * name, even if they are in different stacks. Frames of Ruby code with the same number also have the same paths
	 * and the same first line. 0: the frame has no number. A number is never used again for other code or another
	 * method.
	 */
	uint64_t method;
	/*
	 * `module`, `inlined` and `lost` are for TRACE_NATIVE. For such a frame, `path` is the source file, and `line` is
	 * the line in this file, if they are known.
	 */
	const char *module; /* the mapped file that contains the code; NULL if there is none */
	bool inlined;	    /* the function is inlined into the function of the next frame */
	/*
	 * Why rbdump could not follow the native stack beyond this place. A frame with such a reason is not a function, and
	 * has no label. NULL for a function.
	 */
	const char *lost;
	struct trace_details *details; /* NULL unless the user has asked for local variables, self or the source */
};

enum trace_state {
	STATE_UNKNOWN,
	STATE_RUNNING,
	STATE_WAITING_GVL,
	STATE_SLEEPING,
	STATE_SLEEPING_FOREVER,
	STATE_BLOCKED,
	STATE_DEAD,
	STATE_SUSPENDED, /* a suspended fiber; the fiber's thread can be in any state */
};

struct call;

/* What a thread or fiber has done since the previous look, if the target is looked at several times. */
enum trace_moved {
	MOVED_NOT_ASKED, /* there was no previous look */
	MOVED_NEW,	 /* the thread was not there in the previous look */
	MOVED_NOT,	 /* the stack is the same, and the native thread has not run at all */
	/* The stack is the same, but the thread may have run: it may have left this stack, and come back to it. */
	MOVED_SAME_STACK,
	MOVED_YES, /* the stack has changed */
	/* The stack was not complete in one of the two looks, or it is not clear whether both looks show the same thread. */
	MOVED_NOT_KNOWN,
};

struct trace_progress {
	enum trace_moved moved;
	bool has_cpu; /* `cpu_ns` is known; false for a suspended fiber */
	/* The CPU time of the native thread since the previous look; for a new thread, since its start. */
	uint64_t cpu_ns;
	bool slept; /* the kernel says that the native thread has not run since the previous look */
	bool fresh; /* the native thread was started after the previous look */
};

/* The current stack of a thread, or the stack of a suspended fiber. */
struct trace_thread {
	uint64_t id;	  /* address of the rb_thread_t; a fiber has the id of its thread */
	pid_t tid;	  /* thread id in the kernel; 0 if not known */
	uint64_t ractor;  /* number of the thread's ractor; the first ractor has number 1 */
	const char *name; /* NULL if the thread has no name */
	bool main;
	enum trace_state state;
	enum verdict verdict;
	enum reason reason;
	/*
	 * A torn window is a range of Ruby's machine code that changes the stack. The name of the torn window in which
	 * the thread was stopped ("vm_push_frame"); NULL if the thread was not in a torn window.
	 */
	const char *window;
	uint64_t fiber;		 /* address of the fiber that has this stack; 0 if not known */
	const char *fiber_state; /* state of the fiber ("resumed"); NULL if not known */
	bool suspended;		 /* this is the stack of a suspended fiber */
	bool native;	     /* this is a native thread that Ruby does not know; `id` is 0, `name` is from the kernel */
	bool unplaced;	     /* native frames may be in wrong places among the frames of Ruby */
	bool ended;	     /* this is a fiber whose thread has ended: tid and ractor are not known */
	uint64_t resumed_by; /* address of the fiber that resumed this fiber; 0 if there is no such fiber */
	/*
	 * The scheduler hook in which the fiber waits ("Scheduler#io_wait"). NULL if the fiber does not wait in a hook.
	 */
	const char *waits_in;
	const char *waits_for; /* the method that called the scheduler hook ("IO#read"); NULL if not known */
	/*
	 * If the thread of a live process slept when its stack was copied: how many times the kernel had given it a CPU
	 * before that time (target/task.h). Otherwise 0.
	 */
	uint64_t switches;
	struct call *call; /* the system call in which the thread is (target/call.h); NULL if none or not known */
	struct trace_frame *frames; /* innermost first */
	size_t nr_frames;
	struct trace_wait wait;	  /* what the thread or fiber waits for */
	struct trace_hold *holds; /* the Mutexes that it holds, most recently locked first; owned by the trace */
	size_t nr_holds;
	struct trace_progress progress; /* all zero if the target is looked at only once */
};

/*
 * Whether the list of threads (or of suspended fibers) is complete. Each value except LIST_COMPLETE is a reason why the
 * list is incomplete. The function trace_missing_text() explains each reason.
 */
enum list_missing {
	LIST_COMPLETE,
	LIST_NOT_KNOWN, /* rbdump does not know how to find the list in the memory of this Ruby */
	LIST_BROKEN,
	LIST_TOO_LONG,
	LIST_OUT_OF_TIME,
	LIST_HEAP_CUT,
	LIST_MISSED,
};

/* The maximum number of layouts in versions_fit. */
#define TRACE_FITS 8

/* The part of a trace that exists only for a core. */
struct trace_core {
	const char *file;
	const char *program;	 /* the kernel's name for the process; NULL if not known */
	int signal;		 /* the signal that ended the process; 0 if no signal ended the process */
	const char *signal_name; /* name of the signal ("SIGSEGV"); NULL if it has no name */
	/* The thread that received the signal. If gcore made the core, this is the thread that was selected in gdb. */
	pid_t tid;
	bool has_fault;
	uint64_t fault;	      /* the address of the memory access that caused the signal */
	const char *lacks[2]; /* sentences that say what the core lacks */
	size_t nr_lacks;
};

/* A thread that was there in the previous look, and is not there any more. */
struct trace_gone {
	uint64_t id; /* `id`, `tid` and `name` are as in struct trace_thread */
	pid_t tid;
	const char *name;
};

/* The look to which a trace belongs, if the target is looked at several times. */
struct trace_look {
	unsigned int number;  /* 1 for the first look; 0 if the target is looked at only once */
	struct timespec time; /* when the look began (CLOCK_REALTIME) */
	unsigned int before;  /* the number of the previous look that had a result; 0 for the first look */
	/* The time from the beginning of that previous look to the beginning of this look, in ns; 0 for the first look. */
	uint64_t since_ns;
	struct trace_gone *gone; /* from malloc(); empty if the list of threads is incomplete */
	size_t nr_gone;
};

struct trace {
	pid_t pid;
	enum version_source version_source;
	const char *ruby_version, *ruby_description, *arch;
	/*
	 * For VERSION_FITS: the releases of each layout that fits, newest layout first. Each element contains the first
	 * and the last release of one layout ("3.1.2 3.1.4"), or the only release of that layout ("3.2.3").
	 */
	const char *versions_fit[TRACE_FITS];
	size_t nr_versions_fit;
	enum layout_source layout_source;
	/*
	 * For LAYOUT_NEAREST: the first and the last release of the layout ("3.3.7 3.3.11"), or the only release of the
	 * layout ("3.3.0"). NULL for any other layout_source.
	 */
	const char *layout_releases;
	const char *layout_file;     /* the layout's file; NULL if the layout is not from a file */
	const char *layout_build_id; /* build-id of the ELF file that contains Ruby; NULL if the file has none */
	/* How many times the target was paused and copied; 0 if the target was copied without a pause. */
	unsigned int pauses;
	/* Sum of all pauses. A pause begins when the first thread stops, and ends when the last thread is resumed. */
	double pause_us;
	bool stopped; /* a signal such as SIGSTOP has stopped the process */
	bool of_core; /* the target is a core: `core` is set, and `stopped` is false */
	struct trace_core core;
	bool gc_known, gc_running;
	/* Each thread is followed by its suspended fibers. The fibers of ended threads come last. */
	struct trace_thread *threads;
	size_t nr_threads;
	const char *native_names_missing; /* why names of native functions may be missing; NULL if there is no reason */
	enum list_missing threads_missing, fibers_missing;
	uint64_t nr_fibers_missing; /* for LIST_MISSED: how many fibers were not found */
	struct trace_look look;
	struct trace_arguments *arguments; /* NULL unless the user has asked for them */

	/*
	 * Whether rbdump has read all waits at one moment. If not, rbdump cannot distinguish a deadlock from waits that
	 * did not exist at the same time. False for a live process that was not paused.
	 */
	bool waits_of_one_moment;
	struct trace_deadlock *deadlocks; /* set by wait_graph_find() */
	size_t nr_deadlocks;

	struct trace_pool *pool; /* owns the strings */
	size_t pool_size;	 /* total size of the pool, in bytes */
};

struct trace *trace_create(void);	 /* NULL if there is not enough memory */
void trace_destroy(struct trace *trace); /* NULL is fine */

/* How many bytes of memory a trace takes: all that trace_destroy() frees, without the overhead of malloc(). */
size_t trace_bytes(const struct trace *trace);

/* The maximum number of bytes of strings in one trace. */
#define TRACE_STRINGS_MAX (256u * 1024 * 1024)

/*
 * A copy of `text` that lives as long as the trace. NULL if `text` is NULL, if there is not enough memory, or if
 * TRACE_STRINGS_MAX is reached.
 */
const char *trace_string(struct trace *trace, const char *text);

/* Each of these functions returns the name that an enum value has in the JSON output. */
const char *trace_state_name(enum trace_state state);
const char *trace_layout_source_name(enum layout_source source);
const char *trace_version_source_name(enum version_source source);
const char *trace_frame_kind_name(enum trace_frame_kind kind);

/* Why a list is incomplete: a short name for programs, and a sentence for people. NULL for LIST_COMPLETE. */
const char *trace_missing_name(enum list_missing missing);
const char *trace_missing_text(enum list_missing missing);

/*
 * Sorts the threads by rank, in ascending order. `ranks` contains the rank of each thread. Threads with the same rank
 * keep their order. Returns false if there is not enough memory.
 */
bool trace_order(struct trace *trace, const size_t *ranks);

/* The first frame at or after `index` that is not a native frame; NULL if there is no such frame. */
const struct trace_frame *trace_next_of_ruby(const struct trace_thread *thread, size_t index);

/* The exit status for a trace: EXIT_COMPLETE or EXIT_PARTIAL (base/error.h). */
int trace_exit_status(const struct trace *trace);

#endif
