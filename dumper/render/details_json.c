#include <jansson.h>

#include "render/details.h"
#include "render/json_build.h"

static json_t *string_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

/* Adds the members of a value: "value", "kind" and "certainty". */
static void add_value(const struct trace_value *value, json_t *object)
{
	json_build_set(object, "value", string_or_null(value->text));
	json_build_set(object, "kind", string_or_null(value->text ? value->kind : NULL));
	json_build_set(object, "doubt",
		       string_or_null(value->text || value->certainty != VALUE_EXACT
					  ? trace_certainty_name(value->certainty)
					  : trace_certainty_name(VALUE_UNREADABLE)));
}

static json_t *local_object(const struct trace_local *local)
{
	json_t *object =
	    json_pack("{s:o, s:I}", "name", string_or_null(local->name), "depth", (json_int_t)local->depth);

	if (object)
		add_value(&local->value, object);
	return object;
}

static json_t *source_object(const struct trace_details *details)
{
	json_t *lines = details->no_source ? json_null() : json_array();

	for (size_t i = 0; i < details->nr_lines; i++)
		json_build_append(lines, json_pack("{s:I, s:o}", "line", (json_int_t)details->lines[i].number, "text",
						   string_or_null(details->lines[i].text)));
	return json_pack("{s:o, s:o, s:o}", "lines", lines, "reason", string_or_null(details->no_source), "doubt",
			 string_or_null(details->source_doubt));
}

void details_json(const struct trace_frame *frame, json_t *object)
{
	const struct trace_details *details = frame->details;
	json_t *locals, *self;

	if (!details || !object)
		return;
	if (details->has_self) {
		self = json_object();
		add_value(&details->self, self);
		json_build_set(object, "self", self);
	}
	if (details->wants_locals) {
		locals = json_array();
		for (size_t i = 0; i < details->nr_locals; i++)
			json_build_append(locals, local_object(&details->locals[i]));
		json_build_set(object, "locals", locals);
		json_build_set(object, "locals_missing", string_or_null(trace_locals_missing_name(details->missing)));
	}
	if (details->wants_source)
		json_build_set(object, "source", source_object(details));
}

static json_t *list(const char *const *of, size_t count)
{
	json_t *array = of ? json_array() : json_null();

	for (size_t i = 0; of && i < count; i++)
		json_build_append(array, string_or_null(of[i]));
	return array;
}

json_t *details_json_arguments(const struct trace_arguments *arguments)
{
	if (!arguments)
		return json_null();
	return json_pack(
	    "{s:o, s:b, s:o, s:o, s:b}", "command_line", list(arguments->line, arguments->nr_line), "command_line_cut",
	    (int)arguments->line_cut, "program_name", string_or_null(arguments->program_name), "environment_names",
	    list(arguments->names, arguments->nr_names), "environment_names_cut", (int)arguments->names_cut);
}
