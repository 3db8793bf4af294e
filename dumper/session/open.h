/*
 * Opens a session: opens a process or a core, and finds the layout that fits its Ruby.
 */
#ifndef RBDUMP_OPEN_H
#define RBDUMP_OPEN_H

#include "base/target_options.h"
#include "mixed/mixed_options.h"
#include "session/session.h"

struct session_options {
	/*
	 * When the process started, as in struct process_stat. If the pid now belongs to a process that started at
	 * another time, session_open() fails, because the wanted process has ended. 0: any process.
	 */
	uint64_t started;
	bool no_stop;		     /* do not pause the target */
	struct mixed_options native; /* which native frames the trace gets; none if `no_stop` is set */
	bool sampling;		   /* fail if sampling is impossible (see live_check_calls(), live_check_stopping()) */
	const char *offsets;	   /* the path of a layout file; NULL: search for a layout */
	bool nearest;		   /* if Ruby's release has no layout, use the nearest layout that fits (fits.h) */
	unsigned int time_limit_s; /* time limit for all work until there is a result (time_limit.h); 0: the default */
	bool locals, self;	   /* read the local variables of each frame, and self (trace/details.h) */
};

struct session_core_options {
	struct core_options core;
	const char *offsets;	     /* as above */
	bool nearest;		     /* as above */
	const char *ruby_version;    /* the version that the user gave for the core, such as "3.4.5"; NULL if none */
	unsigned int time_limit_s;   /* as above */
	struct mixed_options native; /* as above */
	bool locals, self;	     /* as above */
};

/*
 * Opens a process, finds the layout for its Ruby, and tests the layout on all stacks.
 *   trace  receives the trace of all stacks. The trace's pid, version and layout are not set yet. The caller destroys
 *          the trace
 *
 * Fails if the process does not exist or has ended, or if `pid` is the tid of a thread that is not a main thread. Also
 * fails if the kernel refuses access, if the process is not a Ruby process, or if no layout fits. Ends rbdump if there
 * is no result within the time limit (time_limit.h).
 */
struct error *session_open(pid_t pid, const struct session_options *options, struct session **ret,
			   struct trace **trace);

/*
 * Opens a core, in the same way as session_open() opens a process. Fails if the file is not a core, or if the file was
 * cut short and lacks memory that is needed. If the version of the core's Ruby is not known, and `offsets` is NULL,
 * tries all layouts. Fails if it is not clear which layout is right (fits.h). Fails if the core and the options
 * contradict each other.
 */
struct error *session_open_core(const struct session_core_options *options, struct session **ret, struct trace **trace);

/*
 * Opens a process as session_open() does, or a core as session_open_core() does.
 *   no_stop  do not pause the process; has no effect for a core
 *   native   which native frames the trace gets; NULL: none
 */
struct error *session_open_target(const struct target_options *from, bool no_stop, const struct mixed_options *native,
				  struct session **ret, struct trace **trace);

#endif
