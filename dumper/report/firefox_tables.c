#include "report/firefox_parts.h"
#include "report/thread_spans.h"

void firefox_write_index(struct json_stream *json, uint32_t index)
{
	if (index == NONE)
		json_stream_null(json, NULL);
	else
		json_stream_integer(json, NULL, index);
}

static void write_same(struct json_stream *json, const char *column, size_t count, const int *value)
{
	json_stream_array(json, column);
	for (size_t i = 0; i < count; i++) {
		if (value)
			json_stream_integer(json, NULL, *value);
		else
			json_stream_null(json, NULL);
	}
	json_stream_end_array(json);
}

static void write_false(struct json_stream *json, const char *column, size_t count)
{
	json_stream_array(json, column);
	for (size_t i = 0; i < count; i++)
		json_stream_boolean(json, NULL, false);
	json_stream_end_array(json);
}

void firefox_end_table(struct json_stream *json, size_t count)
{
	json_stream_integer(json, "length", (int64_t)count);
	json_stream_end_object(json);
}

static void write_line(struct json_stream *json, const struct profile_function *function, int64_t line)
{
	/* The line of a function without a file is in its caller, in the caller's file. */
	if (function->path && line > 0)
		json_stream_integer(json, NULL, line);
	else
		json_stream_null(json, NULL);
}

static void write_stacks(struct firefox_writer *writer)
{
	const struct profile *profile = writer->profile;
	struct json_stream *json = &writer->json;

	json_stream_object(json, "stackTable");
	json_stream_array(json, "frame");
	for (size_t i = 1; i < profile->nr_nodes; i++)
		if (writer->callers[i] != NONE)
			json_stream_integer(json, NULL, profile->nodes[i].frame);
	for (uint32_t i = 0; i < writer->nr_leaves; i++)
		json_stream_integer(json, NULL, (int64_t)profile->nr_frames + i);
	json_stream_end_array(json);
	json_stream_array(json, "prefix");
	for (size_t i = 1; i < profile->nr_nodes; i++)
		if (writer->callers[i] != NONE)
			firefox_write_index(json, writer->callers[profile->nodes[i].parent]);
	for (uint32_t i = 0; i < writer->nr_leaves; i++) {
		uint32_t node = writer->leaves[i].node;

		firefox_write_index(json, node != 0 ? writer->callers[profile->nodes[node].parent] : NONE);
	}
	json_stream_end_array(json);
	firefox_end_table(json, (size_t)writer->nr_callers + writer->nr_leaves);
}

/* The frame of a leaf; NULL if nothing is known of its stack. */
static const struct profile_frame *leaf_frame(const struct firefox_writer *writer, uint32_t leaf)
{
	const struct profile *profile = writer->profile;
	uint32_t node = writer->leaves[leaf].node;

	return node != 0 ? &profile->frames[profile->nodes[node].frame] : NULL;
}

static void write_frame_lines(struct firefox_writer *writer)
{
	const struct profile *profile = writer->profile;

	json_stream_array(&writer->json, "line");
	for (size_t i = 0; i < profile->nr_frames; i++)
		write_line(&writer->json, &profile->functions[profile->frames[i].function], profile->frames[i].line);
	for (uint32_t i = 0; i < writer->nr_leaves; i++) {
		const struct profile_frame *frame = leaf_frame(writer, i);

		if (frame)
			write_line(&writer->json, &profile->functions[frame->function], frame->line);
		else
			json_stream_null(&writer->json, NULL);
	}
	json_stream_end_array(&writer->json);
}

static void write_frame_functions(struct firefox_writer *writer)
{
	const struct profile *profile = writer->profile;

	json_stream_array(&writer->json, "func");
	for (size_t i = 0; i < profile->nr_frames; i++)
		json_stream_integer(&writer->json, NULL, profile->frames[i].function);
	for (uint32_t i = 0; i < writer->nr_leaves; i++) {
		const struct profile_frame *frame = leaf_frame(writer, i);

		json_stream_integer(&writer->json, NULL, frame ? frame->function : (int64_t)profile->nr_functions);
	}
	json_stream_end_array(&writer->json);
}

static int subcategory(const struct firefox_writer *writer, const struct firefox_leaf *leaf)
{
	return leaf->state == SAMPLE_BLOCKED && leaf->syscall >= 0 ? writer->subcategories[leaf->syscall] : OTHER;
}

static void write_frame_categories(struct firefox_writer *writer, const char *column, bool sub)
{
	json_stream_array(&writer->json, column);
	for (size_t i = 0; i < writer->profile->nr_frames; i++)
		json_stream_null(&writer->json, NULL);
	for (uint32_t i = 0; i < writer->nr_leaves; i++) {
		const struct firefox_leaf *leaf = &writer->leaves[i];

		json_stream_integer(&writer->json, NULL, sub ? subcategory(writer, leaf) : leaf->state + 1);
	}
	json_stream_end_array(&writer->json);
}

static void write_frames(struct firefox_writer *writer)
{
	struct json_stream *json = &writer->json;
	size_t count = writer->profile->nr_frames + writer->nr_leaves;

	json_stream_object(json, "frameTable");
	write_same(json, "address", count, &(int){-1});
	write_same(json, "inlineDepth", count, &(int){0});
	write_frame_categories(writer, "category", false);
	write_frame_categories(writer, "subcategory", true);
	write_frame_functions(writer);
	write_same(json, "nativeSymbol", count, NULL);
	write_same(json, "innerWindowID", count, NULL);
	write_frame_lines(writer);
	write_same(json, "column", count, NULL);
	firefox_end_table(json, count);
}

static void write_function_names(struct firefox_writer *writer)
{
	const struct profile *profile = writer->profile;

	json_stream_array(&writer->json, "name");
	for (size_t i = 0; i < profile->nr_functions; i++)
		json_stream_integer(&writer->json, NULL,
				    string_table_add(&writer->strings, profile->functions[i].name));
	json_stream_integer(&writer->json, NULL, string_table_add(&writer->strings, THREAD_SPANS_NO_STACK));
	json_stream_end_array(&writer->json);
}

static void write_function_places(struct firefox_writer *writer)
{
	const struct profile *profile = writer->profile;

	json_stream_array(&writer->json, "source");
	for (size_t i = 0; i < profile->nr_functions; i++) {
		const char *path = profile->functions[i].path;

		firefox_write_index(&writer->json, path ? string_table_add(&writer->sources, path) : NONE);
	}
	json_stream_null(&writer->json, NULL);
	json_stream_end_array(&writer->json);
	json_stream_array(&writer->json, "lineNumber");
	for (size_t i = 0; i < profile->nr_functions; i++)
		write_line(&writer->json, &profile->functions[i], profile->functions[i].first_line);
	json_stream_null(&writer->json, NULL);
	json_stream_end_array(&writer->json);
}

static void write_functions(struct firefox_writer *writer)
{
	struct json_stream *json = &writer->json;
	size_t count = writer->profile->nr_functions + 1;

	json_stream_object(json, "funcTable");
	write_function_names(writer);
	write_false(json, "isJS", count);
	write_false(json, "relevantForJS", count);
	write_same(json, "resource", count, &(int){-1});
	write_function_places(writer);
	write_same(json, "columnNumber", count, NULL);
	firefox_end_table(json, count);
}

void firefox_write_empty_table(struct json_stream *json, const char *table, const char *const *columns)
{
	json_stream_object(json, table);
	for (; *columns; columns++)
		write_same(json, *columns, 0, NULL);
	firefox_end_table(json, 0);
}

static void write_sources(struct firefox_writer *writer)
{
	struct json_stream *json = &writer->json;

	json_stream_object(json, "sources");
	write_same(json, "uuid", writer->sources.count, NULL);
	json_stream_array(json, "filename");
	for (size_t i = 0; i < writer->sources.count; i++)
		json_stream_integer(json, NULL, string_table_add(&writer->strings, writer->sources.strings[i]));
	json_stream_end_array(json);
	firefox_end_table(json, writer->sources.count);
}

void firefox_write_tables(struct firefox_writer *writer)
{
	static const char *const resources[] = {"lib", "name", "host", "type", NULL};
	static const char *const symbols[] = {"libIndex", "address", "name", "functionSize", NULL};
	struct json_stream *json = &writer->json;

	json_stream_object(json, "shared");
	write_stacks(writer);
	write_frames(writer);
	write_functions(writer);
	firefox_write_empty_table(json, "resourceTable", resources);
	firefox_write_empty_table(json, "nativeSymbols", symbols);
	write_sources(writer);
	json_stream_array(json, "stringArray");
	for (size_t i = 0; i < writer->strings.count; i++)
		json_stream_string(json, NULL, writer->strings.strings[i]);
	json_stream_end_array(json);
	json_stream_end_object(json);
}
