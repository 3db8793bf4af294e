#include "session/open.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "mixed/mixed.h"
#include "session/layouts.h"
#include "session/time_limit.h"
#include "session/version.h"
#include "target/live.h"
#include "target/process_stat.h"
#include "target/stopping.h"

static bool in_other_pid_namespace(pid_t pid)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &theirs) != 0 || stat("/proc/self/ns/pid", &ours) != 0 || theirs.st_ino != ours.st_ino;
}

/*
 * Completes a session whose target is open.
 *   ruby_version  the version of a core that the user gave; NULL if none
 *   native        which native frames are wanted
 *   time_limit_s  the time limit; 0: the default
 */
static struct error *open_session(struct session *session, const char *ruby_version, const struct mixed_options *native,
				  unsigned int time_limit_s, struct trace **trace)
{
	struct mixed_options mixed = *native;
	struct error *error = module_find_ruby(session->target, &session->module);

	if (error)
		return error;
	roots_from_module(session->module, &session->module_roots);
	/* The stacks of Ruby are shown even if their native functions cannot be named within the time limit. */
	mixed.names_ms = (time_limit_s == 0		  ? TIME_LIMIT_S
			  : time_limit_s < UINT_MAX / 500 ? time_limit_s
							  : UINT_MAX / 500) *
			 500;
	if (native->which != MIXED_NONE)
		error = mixed_create(&mixed, session->target, session->module, &session->mixed);
	if (error)
		return error;
	session->memory = session_memory(session);
	if (!session->memory)
		return error_no_memory();
	error = session_settle_version(session, ruby_version);
	if (!error)
		error = session_find_layout(session, trace);
	if (!error && !*trace)
		error = error_no_memory();
	return error;
}

/* Hands a session over, or closes it if there was an error. */
static struct error *finish(struct session *session, struct error *error, struct session **ret)
{
	if (error)
		session_close(session);
	else
		*ret = session;
	return error;
}

/* Whether the process is still the one that started then. */
static struct error *check_started(pid_t pid, uint64_t started)
{
	struct process_stat now;

	if (process_stat_read("/proc", pid, &now) && now.started == started)
		return NULL;
	return error_create(EXIT_FAILED, "process %d has ended", pid);
}

struct error *session_open(pid_t pid, const struct session_options *options, struct session **ret, struct trace **trace)
{
	struct session *session = calloc(1, sizeof(*session));
	pid_t process = process_stat_process("/proc", pid);
	struct error *error;

	*trace = NULL;
	if (!session)
		return error_no_memory();
	if (process != 0 && process != pid) {
		session_close(session);
		return error_create(EXIT_FAILED, "%d is a thread of process %d: use -p %d", pid, process, process);
	}
	session->no_stop = options->no_stop;
	session->offsets = options->offsets;
	session->nearest = options->nearest;
	session->wants_locals = options->locals;
	session->wants_self = options->self;
	error = time_limit_begin("process", pid, options->time_limit_s);
	if (!error)
		error = live_open(pid, &session->target);
	/* Once it is open: so that it was this process all the time. */
	if (!error && options->started != 0)
		error = check_started(pid, options->started);
	if (!error && options->sampling)
		error = live_check_calls(session->target);
	if (!error && options->sampling && !options->no_stop)
		error = live_check_stopping(session->target);
	if (!error) {
		session->foreign_pids = in_other_pid_namespace(session->target->pid);
		error = open_session(session, NULL, &options->native, options->time_limit_s, trace);
	}
	if (!error) {
		session->natives = native_ids_create(session->target);
		error = session->natives ? NULL : error_no_memory();
	}
	time_limit_end();
	return finish(session, error, ret);
}

struct error *session_open_core(const struct session_core_options *options, struct session **ret, struct trace **trace)
{
	struct session *session = calloc(1, sizeof(*session));
	struct error *error;

	*trace = NULL;
	if (!session)
		return error_no_memory();
	session->offsets = options->offsets;
	session->nearest = options->nearest;
	session->wants_locals = options->locals;
	session->wants_self = options->self;
	/* Unpacking a core has no time limit, because the length of a core is limited. */
	error = core_open(&options->core, &session->target);
	if (!error) {
		error =
		    time_limit_begin(session->target->operations->name, session->target->pid, options->time_limit_s);
		if (!error)
			error =
			    core_explain(session->target, open_session(session, options->ruby_version, &options->native,
								       options->time_limit_s, trace));
		time_limit_end();
	}
	return finish(session, error, ret);
}

struct error *session_open_target(const struct target_options *from, bool no_stop, const struct mixed_options *native,
				  struct session **ret, struct trace **trace)
{
	const struct mixed_options none = {.which = MIXED_NONE};
	const struct session_options live = {
	    .started = from->started,
	    .no_stop = no_stop,
	    .native = native ? *native : none,
	    .offsets = from->offsets,
	    .nearest = from->nearest,
	    .time_limit_s = from->time_limit_s,
	    .locals = from->locals,
	    .self = from->self,
	};
	const struct session_core_options core = {
	    .core = {.file = from->core, .executable = from->executable, .force = from->force},
	    .offsets = from->offsets,
	    .nearest = from->nearest,
	    .ruby_version = from->ruby_version,
	    .native = native ? *native : none,
	    .time_limit_s = from->time_limit_s,
	    .locals = from->locals,
	    .self = from->self,
	};

	return from->core ? session_open_core(&core, ret, trace) : session_open(from->pid, &live, ret, trace);
}
