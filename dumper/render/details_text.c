#include "base/text.h"
#include "render/details.h"

#define INDENT "        "

/* The codes of a terminal. */
struct codes {
	const char *dim, *bold, *reset;
};

static void put_value(const struct trace_value *value, const struct codes *codes, FILE *stream)
{
	const char *doubt = trace_certainty_text(value->certainty);

	if (value->text)
		text_print(value->text, stream);
	if (value->text && value->certainty != VALUE_EXACT && value->certainty != VALUE_UNREADABLE)
		fprintf(stream, " %s(%s)%s", codes->dim, doubt, codes->reset);
	else if (!value->text)
		fprintf(stream, "%s(%s)%s", codes->dim, doubt ? doubt : "unreadable", codes->reset);
	fputc('\n', stream);
}

static void put_locals(const struct trace_details *details, const struct codes *codes, FILE *stream)
{
	for (size_t i = 0; i < details->nr_locals; i++) {
		const struct trace_local *local = &details->locals[i];

		if (local->shown)
			continue;
		fputs(INDENT, stream);
		text_print(local->name ? local->name : "?", stream);
		fputs(" = ", stream);
		put_value(&local->value, codes, stream);
	}
	if (trace_locals_missing_text(details->missing))
		fprintf(stream, INDENT "%s(local variables may be missing: %s)%s\n", codes->dim,
			trace_locals_missing_text(details->missing), codes->reset);
}

static void put_source(const struct trace_frame *frame, const struct codes *codes, FILE *stream)
{
	const struct trace_details *details = frame->details;

	if (details->no_source) {
		fprintf(stream, INDENT "%s(no source: ", codes->dim);
		text_print(details->no_source, stream);
		fprintf(stream, ")%s\n", codes->reset);
	}
	for (size_t i = 0; i < details->nr_lines; i++) {
		const bool current = details->lines[i].number == frame->line;

		fprintf(stream, INDENT "%s%s %5lld  ", current ? codes->bold : codes->dim, current ? ">" : " ",
			(long long)details->lines[i].number);
		text_print(details->lines[i].text, stream);
		fprintf(stream, "%s\n", codes->reset);
	}
	if (details->source_doubt)
		fprintf(stream, INDENT "%s(%s)%s\n", codes->dim, details->source_doubt, codes->reset);
}

void details_text(const struct trace_frame *frame, const char *dim, const char *bold, const char *reset, FILE *stream)
{
	const struct trace_details *details = frame->details;
	const struct codes codes = {dim, bold, reset};

	if (!details)
		return;
	if (details->has_self) {
		fputs(INDENT "self = ", stream);
		put_value(&details->self, &codes, stream);
	}
	put_locals(details, &codes, stream);
	put_source(frame, &codes, stream);
}

/* Writes a list of strings on one line, with a space before each. */
static void put_list(const char *const *of, size_t count, bool cut, FILE *stream)
{
	for (size_t i = 0; i < count; i++) {
		fputc(' ', stream);
		text_print(of[i], stream);
	}
	fputs(cut ? " …" : "", stream);
}

void details_text_arguments(const struct trace_arguments *arguments, const char *bold, const char *reset, FILE *stream)
{
	if (!arguments)
		return;
	fprintf(stream, "\n%sCommand line:%s", bold, reset);
	if (arguments->line)
		put_list(arguments->line, arguments->nr_line, arguments->line_cut, stream);
	else
		fputs(" not known", stream);
	fprintf(stream, "\n%s$0 at the start:%s ", bold, reset);
	text_print(arguments->program_name ? arguments->program_name : "not known", stream);
	fprintf(stream, "\n%sEnvironment (only names):%s", bold, reset);
	if (arguments->names)
		put_list(arguments->names, arguments->nr_names, arguments->names_cut, stream);
	else
		fputs(" not known", stream);
}
