#include "render/flame_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "render/flamegraph_page.h"

/* All texts of the page, sorted and unique. The page refers to them by index. */
struct strings {
	const char **of;
	size_t count;
};

/* A page, while it is written. */
struct writing {
	const struct flame_page *page;
	FILE *stream;
	struct strings strings;
};

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_string(struct strings *strings, const char *text)
{
	if (text)
		strings->of[strings->count++] = text;
}

static void sort_strings(struct strings *strings)
{
	size_t kept = 0;

	qsort(strings->of, strings->count, sizeof(*strings->of), compare_strings);
	for (size_t i = 0; i < strings->count; i++) {
		if (kept == 0 || strcmp(strings->of[kept - 1], strings->of[i]) != 0)
			strings->of[kept++] = strings->of[i];
	}
	strings->count = kept;
}

static bool collect_strings(struct strings *strings, const struct flame_page *page)
{
	strings->of = calloc(3 * page->nr_functions + page->nr_nodes + 1, sizeof(*strings->of));
	if (!strings->of)
		return false;
	for (size_t i = 0; i < page->nr_functions; i++) {
		const struct flame_function function = page->function(page->context, i);

		add_string(strings, function.name);
		add_string(strings, function.path);
		add_string(strings, function.absolute_path);
	}
	for (size_t i = 0; i < page->nr_nodes; i++)
		add_string(strings, page->node(page->context, i).group);
	sort_strings(strings);
	return true;
}

/* The index of a text in the table; -1 for NULL. */
static ptrdiff_t string_index(const struct strings *strings, const char *text)
{
	const char **found = NULL;

	if (text && strings->count > 0)
		found = bsearch(&text, strings->of, strings->count, sizeof(*strings->of), compare_strings);
	return found ? found - strings->of : -1;
}

void flame_page_write_text(const char *name, const char *value, FILE *stream)
{
	fprintf(stream, "\"%s\":", name);
	text_print_json(value ? value : "", stream);
	fputs(",\n", stream);
}

static void write_integers(FILE *stream, const char *separator, const int64_t *of, size_t count)
{
	fputs(separator, stream);
	for (size_t i = 0; i < count; i++)
		fprintf(stream, "%s%" PRId64, i > 0 ? "," : "", of[i]);
}

static void write_sides(const struct writing *writing)
{
	const struct flame_page *page = writing->page;

	fputs("\"profiles\":[", writing->stream);
	for (size_t i = 0; i < page->nr_sides; i++) {
		fputs(i > 0 ? ",\n" : "", writing->stream);
		page->write_side(page->context, i, writing->stream);
	}
	fputs("],\n", writing->stream);
}

static void write_states(const struct writing *writing)
{
	const struct flame_page *page = writing->page;

	fputs("\"states\":[", writing->stream);
	for (size_t i = 0; i < page->nr_states; i++)
		fprintf(writing->stream, "%s\"%s\"", i > 0 ? "," : "", page->state(page->context, i));
	fputs("],\n", writing->stream);
}

static void write_strings(const struct writing *writing)
{
	fputs("\"strings\":[", writing->stream);
	for (size_t i = 0; i < writing->strings.count; i++) {
		fputs(i > 0 ? ",\n" : "", writing->stream);
		text_print_json(writing->strings.of[i], writing->stream);
	}
	fputs("],\n", writing->stream);
}

static void write_functions(const struct writing *writing)
{
	const struct flame_page *page = writing->page;

	fputs("\"functions\":[", writing->stream);
	for (size_t i = 0; i < page->nr_functions; i++) {
		const struct flame_function function = page->function(page->context, i);
		const int64_t columns[] = {function.kind, string_index(&writing->strings, function.name),
					   string_index(&writing->strings, function.path),
					   string_index(&writing->strings, function.absolute_path),
					   function.first_line};

		write_integers(writing->stream, i > 0 ? ",\n" : "", columns, 5);
	}
	fputs("],\n", writing->stream);
}

static void write_nodes(const struct writing *writing)
{
	const struct flame_page *page = writing->page;

	fputs("\"nodes\":[", writing->stream);
	for (size_t i = 0; i < page->nr_nodes; i++) {
		const struct flame_node node = page->node(page->context, i);
		const bool group = node.function == FLAME_GROUP;
		const int64_t columns[] = {node.parent, group ? -1 : (int64_t)node.function,
					   group ? string_index(&writing->strings, node.group) : node.line};

		write_integers(writing->stream, i > 0 ? ",\n" : "", columns, 3);
	}
	fputs("],\n", writing->stream);
}

/*
 * Most nodes have no stack that ends there: only values other than zero are written, each after the index of its
 * node.
 */
static void write_weights(const struct writing *writing, size_t side)
{
	const struct flame_page *page = writing->page;
	const char *separator = "";

	for (size_t i = 0; i < page->nr_nodes; i++) {
		for (size_t state = 0; state < page->nr_states; state++) {
			const uint64_t weight = page->weight(page->context, side, i, state);

			if (weight == 0)
				continue;
			fprintf(writing->stream, "%s%zu,%zu,%" PRIu64, separator, i, state, weight);
			separator = ",\n";
		}
	}
}

static void write_samples(const struct writing *writing, size_t side)
{
	const struct flame_page *page = writing->page;
	const char *separator = "";

	for (size_t i = 0; i < page->nr_nodes; i++) {
		const uint64_t samples = page->samples(page->context, side, i);

		if (samples == 0)
			continue;
		fprintf(writing->stream, "%s%zu,%" PRIu64, separator, i, samples);
		separator = ",\n";
	}
}

/* One table for each side. */
static void write_tables(const struct writing *writing, const char *name,
			 void (*write)(const struct writing *writing, size_t side))
{
	fprintf(writing->stream, "\"%s\":[", name);
	for (size_t i = 0; i < writing->page->nr_sides; i++) {
		fputs(i > 0 ? ",\n[" : "[", writing->stream);
		write(writing, i);
		fputc(']', writing->stream);
	}
	fputc(']', writing->stream);
}

bool flame_page_write(const struct flame_page *page, FILE *stream)
{
	struct writing writing = {.page = page, .stream = stream};

	if (!collect_strings(&writing.strings, page))
		return false;
	fputs(flamegraph_page_head, stream);
	fputs("{", stream);
	flame_page_write_text("title", page->title, stream);
	flame_page_write_text("by", page->by, stream);
	flame_page_write_text("unit", page->bytes ? "bytes" : "ns", stream);
	flame_page_write_text("remark", page->remark, stream);
	write_sides(&writing);
	write_states(&writing);
	write_strings(&writing);
	write_functions(&writing);
	write_nodes(&writing);
	write_tables(&writing, "weights", write_weights);
	fputs(",\n", stream);
	write_tables(&writing, "samples", write_samples);
	fputs("}", stream);
	fputs(flamegraph_page_tail, stream);
	free(writing.strings.of);
	return true;
}
