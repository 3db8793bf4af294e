#include "layout/write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "layout/words.h"

/* Lines of facts, to be sorted. */
struct lines {
	char **lines;
	size_t count;
	bool failed; /* out of memory; what is there is not all */
};

/* Adds a line; printf-like. */
__attribute__((format(printf, 2, 3))) static void add_line(struct lines *lines, const char *format, ...)
{
	va_list args;
	char *line;
	int length;

	va_start(args, format);
	length = vasprintf(&line, format, args);
	va_end(args);
	if (length >= 0 && array_make_room_for_one(lines->lines, lines->count)) {
		lines->lines[lines->count++] = line;
		return;
	}
	if (length >= 0)
		free(line);
	lines->failed = true;
}

static void add_numbers(struct lines *lines, const struct layout_number *numbers, const struct layout_spec *specs,
			size_t count, const char *kind)
{
	for (size_t i = 0; i < count; i++) {
		if (numbers[i].present)
			add_line(lines, "%s %s %" PRId64, numbers[i].is_macro ? "macro" : kind, specs[i].names[0],
				 numbers[i].value);
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
			add_line(lines, "member %s %" PRIu32 " %" PRIu32 " bits %u %u", name, m->offset, m->size,
				 m->shift, m->width);
		else
			add_line(lines, "member %s %" PRIu32 " %" PRIu32, name, m->offset, m->size);
	}
}

/* Adds what holds for any build of this version. */
static void add_facts(struct lines *lines, const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_STRUCTS; i++) {
		if (layout->sizes[i].present)
			add_line(lines, "size %s %" PRId64, layout_struct_specs[i].names[layout->struct_alternative[i]],
				 layout->sizes[i].value);
	}
	add_members(lines, layout);
	add_numbers(lines, layout->enumerators, layout_enumerator_specs, LAYOUT_ENUMERATORS, "enumerator");
	add_numbers(lines, layout->constants, layout_constant_specs, LAYOUT_CONSTANTS, "constant");
	for (size_t i = 0; i < LAYOUT_FUNCTIONS; i++) {
		if (layout->functions[i])
			add_line(lines, "function %s", layout_function_specs[i].names[0]);
	}
}

/* Adds what holds only for this build. */
static void add_addresses(struct lines *lines, const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_SYMBOLS; i++) {
		if (layout->symbols[i].present)
			add_line(lines, "symbol %s 0x%" PRIx64,
				 layout_symbol_specs[i].names[layout->symbols[i].alternative],
				 layout->symbols[i].address);
	}
	for (size_t i = 0; i < layout->nr_windows; i++) {
		const struct layout_window *w = &layout->windows[i];

		add_line(lines, "window %s 0x%" PRIx64 " 0x%" PRIx64 " %s", layout_window_specs[w->id].names[0], w->low,
			 w->high, w->function);
	}
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void write_lines(const struct layout *layout, const struct lines *lines, FILE *file)
{
	uint64_t digest = LAYOUT_DIGEST_BEGIN;

	for (size_t i = 0; i < lines->count; i++)
		digest = layout_digest_line(digest, lines->lines[i]);

	fprintf(file, LAYOUT_MAGIC " %d\n", LAYOUT_FORMAT);
	for (enum layout_header h = 0; h < LAYOUT_HEADERS; h++) {
		const char *value = *layout_header_value(layout, h);

		if (h == LAYOUT_HEADER_DIGEST)
			fprintf(file, "%s %016" PRIx64 "\n", layout_headers[h].word, digest);
		else if (value)
			fprintf(file, "%s %s\n", layout_headers[h].word, value);
	}
	for (size_t i = 0; i < lines->count; i++)
		fprintf(file, "%s\n", lines->lines[i]);
	fprintf(file, "end %zu\n", lines->count);
}

bool layout_write(const struct layout *layout, FILE *file)
{
	struct lines lines = {0};
	bool complete;

	add_facts(&lines, layout);
	if (layout->build_id)
		add_addresses(&lines, layout);
	if (lines.count)
		qsort(lines.lines, lines.count, sizeof(*lines.lines), by_bytes);
	complete = !lines.failed;
	if (complete)
		write_lines(layout, &lines, file);
	for (size_t i = 0; i < lines.count; i++)
		free(lines.lines[i]);
	free(lines.lines);
	if (complete)
		return fflush(file) == 0 && !ferror(file);
	errno = ENOMEM;
	return false;
}
