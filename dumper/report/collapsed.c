#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "render/collapsed_frame.h"
#include "report/call_tree.h"
#include "report/format.h"
#include "report/thread_spans.h"

/* A line without its number, and which profile it is from. */
struct stack_line {
	char *text;
	uint64_t us, before_us;
};

struct stack_lines {
	struct stack_line *of;
	size_t count, capacity;
};

/* The name of a node; empty, not NULL, if it has none. */
static struct text frame_of(const struct call_tree *tree, const struct call_node *node)
{
	struct text name = {0}, frame = {0};

	call_node_name(tree, node, &name);
	text_format(&frame, "%s", "");
	frame.failed |= name.failed;
	if (name.length > 0)
		collapsed_add_frame(&frame, name.data, name.length);
	text_clear(&name);
	return frame;
}

/* The frames from the root to a node, joined. NULL if there is not enough memory. */
static char *line_of(const struct call_tree *tree, const struct text *frames, uint32_t index)
{
	size_t length = 0;
	char *line;

	for (uint32_t at = index; at != 0; at = tree->nodes[at].parent)
		length += frames[at].length + 1;
	line = malloc(length);
	/* From its end. Each frame has one more byte after it; after the last one that is the NUL. */
	for (uint32_t at = index; line && at != 0; at = tree->nodes[at].parent) {
		line[--length] = at == index ? '\0' : ';';
		length -= frames[at].length;
		if (frames[at].length > 0)
			memcpy(line + length, frames[at].data, frames[at].length);
	}
	return line;
}

/* Adds a line, and takes it over. False if there is not enough memory. */
static bool add_line(struct stack_lines *lines, char *line, uint64_t us, bool before)
{
	if (line && !array_make_room(lines->of, lines->capacity, lines->count + 1)) {
		free(line);
		return false;
	}
	if (!line)
		return false;
	lines->of[lines->count++] =
	    (struct stack_line){.text = line, .us = before ? 0 : us, .before_us = before ? us : 0};
	return true;
}

static bool add_lines_of(const struct call_tree *tree, struct text *frames, bool before, struct stack_lines *ret)
{
	/* The root itself stands for the time of threads that have no frames. */
	const uint64_t without_us = (call_node_self(&tree->nodes[0]) + 500) / 1000;

	if (without_us > 0 && !add_line(ret, strdup(THREAD_SPANS_NO_STACK), without_us, before))
		return false;
	for (uint32_t i = 1; i < tree->count; i++) {
		uint64_t us = (call_node_self(&tree->nodes[i]) + 500) / 1000;

		/* The frames of its callers are there already: they come before it. */
		frames[i] = frame_of(tree, &tree->nodes[i]);
		if (frames[i].failed || (us > 0 && !add_line(ret, line_of(tree, frames, i), us, before)))
			return false;
	}
	return true;
}

static bool add_lines(const struct profile *profile, const struct format_options *options, bool before,
		      struct stack_lines *ret)
{
	struct call_tree *tree = call_tree_for(profile, options);
	struct text *frames = tree ? calloc(tree->count, sizeof(*frames)) : NULL;
	bool enough = frames && add_lines_of(tree, frames, before, ret);

	for (size_t i = 0; frames && i < tree->count; i++)
		text_clear(&frames[i]);
	free(frames);
	call_tree_destroy(tree);
	return enough;
}

static int by_text(const void *a, const void *b)
{
	const struct stack_line *x = a, *y = b;

	return strcmp(x->text, y->text);
}

bool format_collapsed(const struct profile *profile, const struct format_options *options, FILE *stream)
{
	struct stack_lines lines = {0};
	bool enough = add_lines(profile, options, false, &lines) &&
		      (!options->before || add_lines(options->before, options, true, &lines));

	if (enough && lines.count > 0)
		qsort(lines.of, lines.count, sizeof(*lines.of), by_text);
	for (size_t i = 0; enough && i < lines.count; i++) {
		/* Two functions may have the same name, and two profiles the same stack. */
		if (i + 1 < lines.count && strcmp(lines.of[i].text, lines.of[i + 1].text) == 0) {
			lines.of[i + 1].us += lines.of[i].us;
			lines.of[i + 1].before_us += lines.of[i].before_us;
			continue;
		}
		fputs(lines.of[i].text, stream);
		if (options->before)
			fprintf(stream, " %" PRIu64, lines.of[i].before_us);
		fprintf(stream, " %" PRIu64 "\n", lines.of[i].us);
	}
	for (size_t i = 0; i < lines.count; i++)
		free(lines.of[i].text);
	free(lines.of);
	return enough;
}
