#include "dump/dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/open_files.h"
#include "base/signal_name.h"
#include "base/text.h"
#include "dump/dump_parts.h"
#include "dump/source.h"
#include "guard/stop_guard.h"
#include "session/calls.h"
#include "session/open.h"
#include "session/process_arguments.h"
#include "target/process_stat.h"

/* Copies untrusted bytes as text that the trace owns; NULL if there are none. */
static const char *keep(struct trace *trace, const char *bytes)
{
	struct text text = {0};
	const char *kept;

	if (!bytes || !bytes[0])
		return NULL;
	text_add(&text, bytes, strlen(bytes));
	kept = text.failed ? NULL : trace_string(trace, text.data);
	text_clear(&text);
	return kept;
}

/* Adds such a text to a list. If there is not enough memory, the list lacks it. */
static void keep_in(struct trace *trace, const char *bytes, const char **list, size_t *count)
{
	const char *kept = keep(trace, bytes);

	if (kept)
		list[(*count)++] = kept;
}

static void describe_core(const struct dump_options *options, const struct session *session, struct trace *trace)
{
	const struct core_death death = core_death(session->target);
	struct trace_core *core = &trace->core;
	const char *signal = signal_name(death.signal);
	char *lacks = target_lacks(session->target), *missing = NULL;

	trace->of_core = true;
	*core = (struct trace_core){
	    .file = keep(trace, options->target.core),
	    .program = keep(trace, death.program),
	    .signal = death.signal,
	    .tid = death.tid,
	    .has_fault = death.has_fault,
	    .fault = death.fault,
	};
	if (signal)
		core->signal_name = keep(trace, signal);
	keep_in(trace, lacks, core->lacks, &core->nr_lacks);
	if (session->module->fd < 0 &&
	    asprintf(&missing, "%s is missing, or is not the file that ran (build-id %s)", session->module->path,
		     session->module->build_id ? session->module->build_id : "not known") >= 0)
		keep_in(trace, missing, core->lacks, &core->nr_lacks);
	free(lacks);
	free(missing);
}

bool dump_is_stopped(pid_t pid)
{
	struct process_stat stat;

	return process_stat_read("/proc", pid, &stat) && stat.state == 'T';
}

/* The version, and where it comes from. */
static void describe_version(const struct session *session, struct trace *trace)
{
	trace->version_source = session->version_source;
	trace->ruby_version = keep(trace, session->version);
	trace->ruby_description = keep(trace, session->description);
	for (size_t i = 0; i < session->nr_fits; i++)
		keep_in(trace, session->fits[i], trace->versions_fit, &trace->nr_versions_fit);
}

void dump_describe(const struct dump_options *options, const struct session *session, struct trace *trace)
{
	trace->pid = session->target->pid;
	if (options->target.core)
		describe_core(options, session, trace);
	describe_version(session, trace);
	trace->arch = SESSION_ARCH;
	trace->layout_source = session->layout.source;
	trace->layout_releases = keep(trace, session_nearest(session));
	trace->layout_file = keep(trace, session->layout.file);
	trace->layout_build_id = keep(trace, session->module->build_id);
}

struct error *dump_add_details(const struct dump_options *options, const struct session *session, struct trace *trace)
{
	if ((options->arguments && !session_add_arguments("/proc", session, options->target.time_limit_s, trace)) ||
	    (options->source && !source_add(session, options->target.core, trace)))
		return error_no_memory();
	return NULL;
}

bool dump_to_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

/* See https://no-color.org. */
struct render_style dump_style(const struct dump_options *options)
{
	const char *no_colour = getenv("NO_COLOR");
	const bool automatic = dump_to_terminal() && !(no_colour && no_colour[0]);

	return (struct render_style){
	    .colour = options->colour == COLOUR_ALWAYS || (options->colour == COLOUR_AUTO && automatic),
	    /* Threads with the same stack have different values. */
	    .all = options->all || options->target.locals || options->target.self,
	};
}

struct error *dump_flush(bool written)
{
	if (!written || fflush(stdout) != 0 || ferror(stdout))
		return error_create(EXIT_FAILED, "the output cannot be written: %s", strerror(errno));
	return NULL;
}

static struct error *print(const struct dump_options *options, const struct session *session, struct trace *trace)
{
	const struct render_style style = dump_style(options);
	bool written = true;

	dump_describe(options, session, trace);
	if (options->json) {
		written = render_json(trace, stdout);
	} else {
		if (options->another)
			putchar('\n');
		render_text(trace, &style, stdout);
	}
	return dump_flush(written);
}

struct error *dump_main(const struct dump_options *options, enum exit_status *status)
{
	const bool stops = !options->target.core && !options->no_stop;
	struct error *error = stops ? stop_guard_begin() : NULL;
	struct session *session;
	struct trace *trace;
	bool stopped;

	if (error)
		return error;
	if (stops)
		open_files_allow();
	stopped = !options->target.core &&
		  dump_is_stopped(options->target.pid); /* later, rbdump itself may be what has stopped it */
	if (stops)
		error = stop_guard_enter();
	if (!error)
		error = session_open_target(&options->target, options->no_stop, &options->native, &session, &trace);
	if (!error)
		session_add_calls(session, options->target.time_limit_s, trace);
	if (stops) {
		stop_guard_leave();
		stop_guard_end();
	}
	if (error)
		return error;
	trace->stopped = stopped;
	error = dump_add_details(options, session, trace);
	*status = (enum exit_status)trace_exit_status(trace);
	if (!error)
		error = print(options, session, trace);
	trace_destroy(trace);
	session_close(session);
	return error;
}
