/*
 * The flame graph: a single HTML file that needs nothing else. The page (flamegraph/) contains the call tree as JSON,
 * in tables of numbers; page.html describes them.
 *
 * Names and paths can be any text: the JSON contains nothing that could end the element around it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/flamegraph_page.h"
#include "report/format.h"
#include "report/merged_tree.h"

/* All texts of the page, sorted and unique. The page refers to them by index. */
struct strings {
	const char **of;
	size_t count;
};

struct page {
	FILE *stream;
	const struct format_options *options;
	const struct profile *profiles[MERGED_SIDES]; /* the second is NULL if nothing is compared */
	const struct merged_tree *tree;
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

static bool collect_strings(struct strings *strings, const struct merged_tree *tree)
{
	strings->of = calloc(3 * tree->nr_functions + tree->count + 1, sizeof(*strings->of));
	if (!strings->of)
		return false;
	for (size_t i = 0; i < tree->nr_functions; i++) {
		add_string(strings, tree->functions[i]->name);
		add_string(strings, tree->functions[i]->path);
		add_string(strings, tree->functions[i]->absolute_path);
	}
	for (size_t i = 0; i < tree->count; i++)
		add_string(strings, tree->nodes[i].group);
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

static void write_text_member(FILE *stream, const char *name, const char *value)
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

static void write_counts(FILE *stream, const struct profile_counts *counts)
{
	fprintf(stream, "\"samples\":%" PRIu64, counts->samples);
	for (int i = 0; i <= VERDICT_UNREADABLE; i++)
		fprintf(stream, ",\"%s\":%" PRIu64, validate_verdict_name(i), counts->verdicts[i]);
	fprintf(stream, ",\"late\":%" PRIu64, counts->late);
}

/* The rate is in millihertz: an integer looks the same in every locale. */
static void write_profile(FILE *stream, const struct profile *profile)
{
	double rate = isfinite(profile->rate) && fabs(profile->rate) < 1e9 ? profile->rate : 0;

	fprintf(stream, "{\"start\":%lld,\"duration_ns\":%" PRIu64 ",\"rate_millihertz\":%lld,\"cut\":%s,",
		(long long)profile->start.tv_sec, profile->duration_ns, llround(rate * 1000),
		profile->cut ? "true" : "false");
	fprintf(stream, "\"processes\":%zu,\"threads\":%zu,", profile->nr_processes, profile->nr_threads);
	write_text_member(stream, "mode", profile->mode);
	write_text_member(stream, "tool", profile->tool);
	write_counts(stream, &profile->counts);
	fputc('}', stream);
}

static void write_profiles(const struct page *page)
{
	fputs("\"profiles\":[", page->stream);
	write_profile(page->stream, page->profiles[MERGED_AFTER]);
	if (page->profiles[MERGED_BEFORE]) {
		fputs(",\n", page->stream);
		write_profile(page->stream, page->profiles[MERGED_BEFORE]);
	}
	fputs("],\n", page->stream);
}

static void write_states(FILE *stream)
{
	fputs("\"states\":[", stream);
	for (int i = 0; i < SAMPLE_STATES; i++)
		fprintf(stream, "%s\"%s\"", i > 0 ? "," : "", sample_state_name(i));
	fputs("],\n", stream);
}

static void write_strings(const struct page *page)
{
	fputs("\"strings\":[", page->stream);
	for (size_t i = 0; i < page->strings.count; i++) {
		fputs(i > 0 ? ",\n" : "", page->stream);
		text_print_json(page->strings.of[i], page->stream);
	}
	fputs("],\n", page->stream);
}

static void write_functions(const struct page *page)
{
	fputs("\"functions\":[", page->stream);
	for (size_t i = 0; i < page->tree->nr_functions; i++) {
		const struct profile_function *function = page->tree->functions[i];
		const int64_t columns[] = {function->kind, string_index(&page->strings, function->name),
					   string_index(&page->strings, function->path),
					   string_index(&page->strings, function->absolute_path), function->first_line};

		write_integers(page->stream, i > 0 ? ",\n" : "", columns, 5);
	}
	fputs("],\n", page->stream);
}

static void write_nodes(const struct page *page)
{
	fputs("\"nodes\":[", page->stream);
	for (size_t i = 0; i < page->tree->count; i++) {
		const struct merged_node *node = &page->tree->nodes[i];
		bool group = node->function == CALL_TREE_GROUP;
		const int64_t columns[] = {node->parent, group ? -1 : (int64_t)node->function,
					   group ? string_index(&page->strings, node->group) : node->line};

		write_integers(page->stream, i > 0 ? ",\n" : "", columns, 3);
	}
	fputs("],\n", page->stream);
}

/*
 * Most nodes have no stack that ends there: only values other than zero are written, each after the index of its
 * node.
 */
static void write_weights(const struct page *page, enum merged_side side)
{
	const char *separator = "";

	for (size_t i = 0; i < page->tree->count; i++) {
		for (int state = 0; state < SAMPLE_STATES; state++) {
			uint64_t weight = page->tree->nodes[i].self[side][state];

			if (weight == 0)
				continue;
			fprintf(page->stream, "%s%zu,%d,%" PRIu64, separator, i, state, weight);
			separator = ",\n";
		}
	}
}

static void write_samples(const struct page *page, enum merged_side side)
{
	const char *separator = "";

	for (size_t i = 0; i < page->tree->count; i++) {
		uint64_t samples = page->tree->nodes[i].samples[side];

		if (samples == 0)
			continue;
		fprintf(page->stream, "%s%zu,%" PRIu64, separator, i, samples);
		separator = ",\n";
	}
}

/* One table for each side. */
static void write_sides(const struct page *page, const char *name, void (*write)(const struct page *, enum merged_side))
{
	fprintf(page->stream, "\"%s\":[[", name);
	write(page, MERGED_AFTER);
	if (page->profiles[MERGED_BEFORE]) {
		fputs("],\n[", page->stream);
		write(page, MERGED_BEFORE);
	}
	fputs("]]", page->stream);
}

static void write_page(const struct page *page)
{
	fputs(flamegraph_page_head, page->stream);
	fputs("{", page->stream);
	write_text_member(page->stream, "title", page->options->title);
	write_text_member(page->stream, "by", page->options->by);
	write_text_member(page->stream, "remark", page->options->remark);
	write_profiles(page);
	write_states(page->stream);
	write_strings(page);
	write_functions(page);
	write_nodes(page);
	write_sides(page, "weights", write_weights);
	fputs(",\n", page->stream);
	write_sides(page, "samples", write_samples);
	fputs("}", page->stream);
	fputs(flamegraph_page_tail, page->stream);
}

static bool write_merged(struct page *page, const struct call_tree *after, const struct call_tree *before)
{
	struct merged_tree *tree = merged_tree_create(after, before);
	bool collected = tree && collect_strings(&page->strings, tree);

	page->tree = tree;
	if (collected)
		write_page(page);
	free(page->strings.of);
	merged_tree_destroy(tree);
	return collected;
}

bool format_flamegraph(const struct profile *profile, const struct format_options *options, FILE *stream)
{
	struct page page = {.stream = stream, .options = options, .profiles = {profile, options->before}};
	struct call_tree *after = call_tree_for(profile, options), *before = NULL;
	bool written = false;

	if (options->before)
		before = call_tree_for(options->before, options);
	if (after && (before || !options->before))
		written = write_merged(&page, after, before);
	call_tree_destroy(before);
	call_tree_destroy(after);
	return written;
}
