#include <stdio.h>

#include "dump/dump_parts.h"
#include "dump/looker.h"
#include "trace/merged.h"

/* Takes looks until there is no further one. */
static struct error *collect(struct looker *looker, struct merged *merged, enum exit_status *status)
{
	struct trace *trace = NULL;
	struct error *error = NULL;

	while (!error && looker->end == LOOKS_GO_ON && !merged_is_full(merged)) {
		error = looker_look(looker, merged->last, &trace);
		if (!trace)
			continue;
		if (trace_exit_status(trace) > (int)*status)
			*status = (enum exit_status)trace_exit_status(trace);
		if (!merged_add(merged, trace))
			error = error_no_memory();
	}
	if (!error && looker->end == LOOKS_GO_ON)
		fputs("rbdump: the looks end early, because the stacks need too much memory\n", stderr);
	return error || merged_finish(merged) ? error : error_no_memory();
}

static struct error *show(const struct dump_options *options, const struct merged *merged)
{
	const struct render_style style = dump_style(options);

	if (options->json)
		return dump_flush(render_merged_json(merged, options->looks, options->interval_s, stdout));
	render_merged_text(merged, options->looks, &style, stdout);
	return dump_flush(true);
}

struct error *dump_merged(const struct dump_options *options, enum exit_status *status)
{
	struct merged merged = {0};
	struct looker looker;
	struct error *error = looker_begin(&looker, options);

	*status = EXIT_COMPLETE;
	if (!error)
		error = collect(&looker, &merged, status);
	if (!error)
		error = show(options, &merged);
	looker_end(&looker);
	*status = looker_status(&looker, *status);
	merged_clear(&merged);
	return error;
}
