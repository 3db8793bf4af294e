#include "dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/text.h"
#include "render/render.h"
#include "session.h"

/* A copy of bytes from outside as text that the trace owns. */
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

static struct error *print(const struct dump_options *options, const struct session *session, struct trace *trace)
{
	bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR"), written;

	trace->pid = session->target->pid;
	trace->ruby_version = keep(trace, session->version);
	trace->ruby_description = keep(trace, session->description);
	trace->arch = SESSION_ARCH;
	trace->layout_source = session->layout.source;
	trace->layout_file = keep(trace, session->layout.file);
	trace->layout_build_id = keep(trace, session->module->build_id);
	if (options->json)
		written = render_json(trace, stdout);
	else {
		render_text(trace, colour, stdout);
		written = true;
	}
	if (!written || fflush(stdout) != 0 || ferror(stdout))
		return error_create(EXIT_FAILED, "the output cannot be written: %s", strerror(errno));
	return NULL;
}

struct error *dump_main(const struct dump_options *options, enum exit_status *status)
{
	const struct session_options how = {.no_stop = options->no_stop, .offsets = options->offsets};
	struct session *session;
	struct trace *trace;
	struct error *error = session_open(options->pid, &how, &session, &trace);

	if (error)
		return error;
	*status = (enum exit_status)trace_exit_status(trace);
	error = print(options, session, trace);
	trace_destroy(trace);
	session_close(session);
	return error;
}
