#include "layout/write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layout/words.h"
#include "sentence.h"

/* Lines of facts, to be sorted. */
struct lines {
	char **lines;
	size_t count;
};

/* Takes a line from sentence(). */
static void add_line(struct lines *lines, char *line)
{
	char **grown = reallocarray(lines->lines, lines->count + 1, sizeof(*grown));

	if (!grown)
		abort(); /* as sentence() does */
	lines->lines = grown;
	lines->lines[lines->count++] = line;
}

static void add_numbers(struct lines *lines, const struct layout_number *numbers, const struct layout_spec *specs,
			size_t count, const char *kind)
{
	for (size_t i = 0; i < count; i++) {
		if (numbers[i].present)
			add_line(lines, sentence("%s %s %" PRId64, numbers[i].is_macro ? "macro" : kind,
						 specs[i].names[0], numbers[i].value));
	}
}

static void add_members(struct lines *lines, const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_MEMBERS; i++) {
		const struct layout_member *m = &layout->members[i];

		if (!m->present)
			continue;
		const char *name = layout_member_specs[i].names[m->alternative];

		if (m->width)
			add_line(lines, sentence("member %s %" PRIu32 " %" PRIu32 " bits %u %u", name, m->offset,
						 m->size, m->shift, m->width));
		else
			add_line(lines, sentence("member %s %" PRIu32 " %" PRIu32, name, m->offset, m->size));
	}
}

/* What holds for any build of this version. */
static void add_facts(struct lines *lines, const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_STRUCTS; i++) {
		if (layout->sizes[i].present)
			add_line(lines, sentence("size %s %" PRId64,
						 layout_struct_specs[i].names[layout->struct_alternative[i]],
						 layout->sizes[i].value));
	}
	add_members(lines, layout);
	add_numbers(lines, layout->enumerators, layout_enumerator_specs, LAYOUT_ENUMERATORS, "enumerator");
	add_numbers(lines, layout->constants, layout_constant_specs, LAYOUT_CONSTANTS, "constant");
	for (size_t i = 0; i < LAYOUT_FUNCTIONS; i++) {
		if (layout->functions[i])
			add_line(lines, sentence("function %s", layout_function_specs[i].names[0]));
	}
}

/* What holds for this build only. */
static void add_addresses(struct lines *lines, const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_SYMBOLS; i++) {
		if (layout->symbols[i].present)
			add_line(lines, sentence("symbol %s 0x%" PRIx64,
						 layout_symbol_specs[i].names[layout->symbols[i].alternative],
						 layout->symbols[i].address));
	}
	for (size_t i = 0; i < layout->nr_windows; i++) {
		const struct layout_window *w = &layout->windows[i];

		add_line(lines, sentence("window %s 0x%" PRIx64 " 0x%" PRIx64 " %s",
					 layout_window_specs[w->id].names[0], w->low, w->high, w->function));
	}
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

bool layout_write(const struct layout *layout, FILE *file)
{
	struct lines lines = {NULL, 0};
	uint64_t digest = LAYOUT_DIGEST_BEGIN;

	add_facts(&lines, layout);
	if (layout->build_id)
		add_addresses(&lines, layout);
	if (lines.count)
		qsort(lines.lines, lines.count, sizeof(*lines.lines), by_bytes);
	for (size_t i = 0; i < lines.count; i++)
		digest = layout_digest_line(digest, lines.lines[i]);

	fprintf(file, LAYOUT_MAGIC " %d\n", LAYOUT_FORMAT);
	for (enum layout_header h = 0; h < LAYOUT_HEADERS; h++) {
		const char *value = *layout_header_value(layout, h);

		if (h == LAYOUT_HEADER_DIGEST)
			fprintf(file, "%s %016" PRIx64 "\n", layout_headers[h].word, digest);
		else if (value)
			fprintf(file, "%s %s\n", layout_headers[h].word, value);
	}
	for (size_t i = 0; i < lines.count; i++) {
		fprintf(file, "%s\n", lines.lines[i]);
		free(lines.lines[i]);
	}
	free(lines.lines);
	fprintf(file, "end %zu\n", lines.count);
	return fflush(file) == 0 && !ferror(file);
}
