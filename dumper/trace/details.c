#include "trace/details.h"

#include <stdlib.h>

#include "base/array.h"

void trace_details_destroy(struct trace_details *details)
{
	if (!details)
		return;
	free(details->locals);
	free(details->lines);
	free(details);
}

void trace_arguments_destroy(struct trace_arguments *arguments)
{
	if (!arguments)
		return;
	free(arguments->line);
	free(arguments->names);
	free(arguments);
}

size_t trace_details_bytes(const struct trace_details *details)
{
	if (!details)
		return 0;
	return sizeof(*details) + details->nr_locals * sizeof(*details->locals) +
	       details->nr_lines * sizeof(*details->lines);
}

size_t trace_arguments_bytes(const struct trace_arguments *arguments)
{
	if (!arguments)
		return 0;
	return sizeof(*arguments) + array_implied_capacity(arguments->nr_line) * sizeof(*arguments->line) +
	       array_implied_capacity(arguments->nr_names) * sizeof(*arguments->names);
}

static const struct {
	const char *name, *text;
} certainties[] = {
    [VALUE_EXACT] = {NULL, NULL},
    [VALUE_LATER] = {"later", "read after the stack: may be newer"},
    [VALUE_UNREADABLE] = {"unreadable", "unreadable"},
    [VALUE_IN_REGISTER] = {"in-register", "unknown: the JIT may have the value in a register"},
    [VALUE_OR_BLOCK] = {"or-block", "or the block, if this variable is the block parameter"},
    [VALUE_NOT_KNOWN] = {"not-known", "unknown"},
};

static const struct {
	const char *name, *text;
} missing_texts[] = {
    [LOCALS_COMPLETE] = {NULL, NULL},
    [LOCALS_NOT_KNOWN] = {"not-known", "rbdump does not know where this Ruby keeps local variables"},
    [LOCALS_TORN] = {"torn", "the stack was changing"},
    [LOCALS_UNREADABLE] = {"unreadable", "an environment, or the name of a variable, could not be read"},
    [LOCALS_TOO_MANY] = {"too-many", "there are too many variables for rbdump"},
    [LOCALS_OUT_OF_TIME] = {"out-of-time", "there was no time left to read the variables"},
};

const char *trace_certainty_name(enum trace_certainty certainty)
{
	return certainties[certainty].name;
}

const char *trace_certainty_text(enum trace_certainty certainty)
{
	return certainties[certainty].text;
}

const char *trace_locals_missing_name(enum trace_locals_missing missing)
{
	return missing_texts[missing].name;
}

const char *trace_locals_missing_text(enum trace_locals_missing missing)
{
	return missing_texts[missing].text;
}
