#include "session/session.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/layouts.h"
#include "session/version.h"
#include "target/live.h"

static bool in_other_pid_namespace(pid_t pid)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &theirs) != 0 || stat("/proc/self/ns/pid", &ours) != 0 || theirs.st_ino != ours.st_ino;
}

/*
 * Looking for debug info can take long: a server may be asked for it, and a file of the target's own may be anything.
 * Nothing is held up by that but rbdump itself; and it does not wait for ever.
 */
#define TIME_LIMIT_S 120

static void out_of_time(int signal)
{
	static const char message[] =
	    "rbdump: nothing to show after two minutes; looking for debug info takes too long\n";
	ssize_t written = write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)signal;
	(void)written;
	_exit(EXIT_FAILED);
}

/*
 * Goes on from a target that is open.
 *   ruby_version  what the user says of a core; NULL
 */
static struct error *open_session(struct session *session, const char *ruby_version, struct trace **trace)
{
	struct error *error = module_find_ruby(session->target, &session->module);

	if (error)
		return error;
	roots_from_module(session->module, &session->module_roots);
	session->memory = memory_create(target_read_pages, session->target, SESSION_PAGES);
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

struct error *session_open(pid_t pid, const struct session_options *options, struct session **ret, struct trace **trace)
{
	struct session *session = calloc(1, sizeof(*session));
	struct error *error;

	*trace = NULL;
	if (!session)
		return error_no_memory();
	session->no_stop = options->no_stop;
	session->offsets = options->offsets;
	signal(SIGALRM, out_of_time);
	alarm(TIME_LIMIT_S);
	error = live_open(pid, &session->target);
	if (!error) {
		session->foreign_pids = in_other_pid_namespace(session->target->pid);
		error = open_session(session, NULL, trace);
	}
	alarm(0);
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
	/* However long it takes to unpack one: its length is limited. */
	error = core_open(&options->core, &session->target);
	if (!error) {
		signal(SIGALRM, out_of_time);
		alarm(TIME_LIMIT_S);
		error = open_session(session, options->ruby_version, trace);
		alarm(0);
	}
	return finish(session, error, ret);
}

void session_close(struct session *session)
{
	if (!session)
		return;
	layout_found_clear(&session->layout);
	memory_destroy(session->memory);
	module_close(session->module);
	target_close(session->target);
	free(session);
}
