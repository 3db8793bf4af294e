/*
 * speedscope's own format, www.speedscope.app/file-format-schema.json: one profile per thread. Each is a sequence of
 * frames that are opened and closed, with their times. All have the same time axis, that of the whole profile.
 */
#include <stdlib.h>

#include "base/array.h"
#include "base/text.h"
#include "report/format.h"
#include "report/json_stream.h"
#include "report/thread_spans.h"

/* A stack as indices in the file's table of frames, outermost first. */
struct stack {
	uint32_t *frames;
	size_t depth, capacity;
};

struct writer {
	const struct profile *profile;
	bool lines; /* the file's frames are the profile's frames; else its functions */
	struct json_stream json;
	struct stack open, next;
};

static size_t frame_count(const struct writer *writer)
{
	return writer->lines ? writer->profile->nr_frames : writer->profile->nr_functions;
}

/* The frame after all others stands for a stack of which nothing is known. */
static uint32_t no_stack(const struct writer *writer)
{
	return (uint32_t)frame_count(writer);
}

static void write_frame(struct json_stream *json, const struct profile_function *function, int64_t line)
{
	json_stream_object(json, NULL);
	json_stream_string(json, "name", function->name);
	if (function->path)
		json_stream_string(json, "file", function->path);
	if (function->path && line > 0)
		json_stream_integer(json, "line", line);
	json_stream_end_object(json);
}

static void write_frames(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	const struct profile_function unknown = {.kind = PROFILE_MARK, .name = THREAD_SPANS_NO_STACK};

	json_stream_object(&writer->json, "shared");
	json_stream_array(&writer->json, "frames");
	for (size_t i = 0; i < frame_count(writer); i++) {
		uint32_t function = writer->lines ? profile->frames[i].function : (uint32_t)i;
		int64_t first_line = profile->functions[function].first_line;

		write_frame(&writer->json, &profile->functions[function],
			    writer->lines ? profile->frames[i].line : first_line);
	}
	write_frame(&writer->json, &unknown, 0);
	json_stream_end_array(&writer->json);
	json_stream_end_object(&writer->json);
}

static bool load_stack(struct writer *writer, uint32_t node, struct stack *stack)
{
	const struct profile *profile = writer->profile;
	size_t depth = 0;

	for (uint32_t at = node; at != 0; at = profile->nodes[at].parent)
		depth++;
	stack->depth = depth > 0 ? depth : 1;
	if (!array_make_room(stack->frames, stack->capacity, stack->depth))
		return false;
	if (depth == 0)
		stack->frames[0] = no_stack(writer);
	for (uint32_t at = node; at != 0; at = profile->nodes[at].parent) {
		uint32_t frame = profile->nodes[at].frame;

		stack->frames[--depth] = writer->lines ? frame : profile->frames[frame].function;
	}
	return true;
}

static void write_event(struct json_stream *json, const char *type, uint32_t frame, uint64_t at)
{
	json_stream_object(json, NULL);
	json_stream_string(json, "type", type);
	json_stream_integer(json, "frame", frame);
	json_stream_integer(json, "at", (int64_t)at);
	json_stream_end_object(json);
}

static void close_down_to(struct writer *writer, size_t depth, uint64_t at)
{
	while (writer->open.depth > depth)
		write_event(&writer->json, "C", writer->open.frames[--writer->open.depth], at);
}

/* Changes from the open stack to that of `node`: common frames stay open. */
static bool go_to(struct writer *writer, uint32_t node, uint64_t at)
{
	struct stack *open = &writer->open, *next = &writer->next, before;
	size_t common = 0;

	if (!load_stack(writer, node, next))
		return false;
	while (common < open->depth && common < next->depth && open->frames[common] == next->frames[common])
		common++;
	close_down_to(writer, common, at);
	for (size_t i = common; i < next->depth; i++)
		write_event(&writer->json, "O", next->frames[i], at);
	before = *open;
	*open = *next;
	*next = before;
	return true;
}

static bool write_events(struct writer *writer, const uint32_t *spans, size_t count)
{
	uint64_t end = 0;

	for (size_t i = 0; i < count; i++) {
		const struct profile_span *span = &writer->profile->spans[spans[i]];

		if (span->start_ns > end)
			close_down_to(writer, 0, end);
		if (!go_to(writer, span->node, span->start_ns))
			return false;
		end = span->start_ns + span->weight_ns;
	}
	close_down_to(writer, 0, end);
	return true;
}

static uint64_t end_of(const struct profile *profile)
{
	uint64_t end = profile->duration_ns;

	for (size_t i = 0; i < profile->nr_spans; i++)
		if (profile->spans[i].start_ns + profile->spans[i].weight_ns > end)
			end = profile->spans[i].start_ns + profile->spans[i].weight_ns;
	return end;
}

static bool write_profile(struct writer *writer, const char *name, uint64_t end, const uint32_t *spans, size_t count)
{
	struct json_stream *json = &writer->json;
	bool ok;

	json_stream_object(json, NULL);
	json_stream_string(json, "type", "evented");
	json_stream_string(json, "name", name);
	json_stream_string(json, "unit", "nanoseconds");
	json_stream_integer(json, "startValue", 0);
	json_stream_integer(json, "endValue", (int64_t)end);
	json_stream_array(json, "events");
	ok = write_events(writer, spans, count);
	json_stream_end_array(json);
	json_stream_end_object(json);
	return ok;
}

static bool write_thread(struct writer *writer, const struct thread_spans *by, size_t thread, uint64_t end)
{
	struct text title = {0};
	bool ok;

	thread_spans_add_title(writer->profile, &writer->profile->threads[thread], &title);
	ok = !title.failed && write_profile(writer, title.data, end, by->spans + by->first[thread],
					    by->first[thread + 1] - by->first[thread]);
	text_clear(&title);
	return ok;
}

static bool write_threads(struct writer *writer, const struct thread_spans *by, const char *title)
{
	const struct profile *profile = writer->profile;
	uint64_t end = end_of(profile);

	/* speedscope shows nothing of a file without any profile. */
	if (profile->nr_spans == 0)
		return write_profile(writer, title, end, NULL, 0);
	for (size_t t = 0; t < profile->nr_threads; t++)
		if (by->first[t] != by->first[t + 1] && !write_thread(writer, by, t, end))
			return false;
	return true;
}

/* The format has no other place for a remark. */
static void write_title(struct writer *writer, const struct format_options *options)
{
	struct text title = {0};

	text_format(&title, "%s%s%s", options->title, options->remark ? "; " : "",
		    options->remark ? options->remark : "");
	json_stream_string(&writer->json, "name", title.failed ? options->title : title.data);
	text_clear(&title);
}

bool format_speedscope(const struct profile *profile, const struct format_options *options, FILE *stream)
{
	struct writer writer = {.profile = profile, .lines = options->lines, .json = {.stream = stream}};
	struct thread_spans by;
	bool ok;

	if (!thread_spans_collect(profile, &by))
		return false;
	json_stream_object(&writer.json, NULL);
	json_stream_string(&writer.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	write_title(&writer, options);
	json_stream_string(&writer.json, "exporter", profile->tool);
	json_stream_integer(&writer.json, "activeProfileIndex", 0);
	write_frames(&writer);
	json_stream_array(&writer.json, "profiles");
	ok = write_threads(&writer, &by, options->title);
	json_stream_end_array(&writer.json);
	json_stream_end_object(&writer.json);
	putc('\n', stream);
	free(writer.open.frames);
	free(writer.next.frames);
	thread_spans_clear(&by);
	return ok;
}
