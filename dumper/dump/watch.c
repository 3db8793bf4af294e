#include <stdio.h>
#include <stdlib.h>

#include "dump/dump_parts.h"
#include "dump/looker.h"
#include "dump/screen.h"

/* The text of a trace, malloc'ed; NULL if there is not enough memory. */
static char *text_of(const struct trace *trace, const struct render_style *style, size_t *length)
{
	char *text = NULL;
	FILE *stream = open_memstream(&text, length);

	if (!stream)
		return NULL;
	render_text(trace, style, stream);
	if (fclose(stream) == 0)
		return text;
	free(text);
	return NULL;
}

/*
 * Shows a trace in the place of the one before. If the terminal is too small, shows only some frames of each thread: as many as
 * there is room for, and at least one.
 */
static struct error *redraw(struct render_style style, const struct trace *trace)
{
	static const size_t frames[] = {0, 16, 8, 5, 3, 2, 1};
	size_t length = 0;
	char *text = NULL;

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		free(text);
		style.frames = frames[i];
		text = text_of(trace, &style, &length);
		if (!text)
			return error_no_memory();
		if (screen_fits(text, length))
			break;
	}
	screen_show(text, length);
	free(text);
	return dump_flush(true);
}

static struct error *show(const struct dump_options *options, const struct trace *trace)
{
	const struct render_style style = dump_style(options);

	if (options->json)
		return dump_flush(render_json(trace, stdout));
	if (dump_to_terminal())
		return redraw(style, trace);
	if (trace->look.number > 1)
		putchar('\n');
	render_text(trace, &style, stdout);
	return dump_flush(true);
}

/* Takes and shows looks until there is no further one. */
static struct error *watch(struct looker *looker, enum exit_status *status)
{
	struct trace *before = NULL, *now = NULL;
	struct error *error = NULL;

	while (!error && looker->end == LOOKS_GO_ON) {
		error = looker_look(looker, before, &now);
		if (!now)
			continue;
		error = show(looker->options, now);
		if (trace_exit_status(now) > (int)*status)
			*status = (enum exit_status)trace_exit_status(now);
		trace_destroy(before);
		before = now;
	}
	trace_destroy(before);
	return error;
}

struct error *dump_watch(const struct dump_options *options, enum exit_status *status)
{
	struct looker looker;
	struct error *error = looker_begin(&looker, options);

	*status = EXIT_COMPLETE;
	if (!error)
		error = watch(&looker, status);
	looker_end(&looker);
	*status = looker_status(&looker, *status);
	return error;
}
