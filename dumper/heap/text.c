#include <inttypes.h>

#include "base/text.h"
#include "heap/histogram.h"
#include "heap/numbers.h"
#include "heap/sums.h"

static void range(uint64_t low, uint64_t high, char ret[NUMBER])
{
	char first[NUMBER], last[NUMBER];

	number_text(low, first);
	number_text(high, last);
	if (low == high)
		snprintf(ret, NUMBER, "%.31s", first);
	else
		snprintf(ret, NUMBER, "%.30s..%.30s", first, last);
}

/* How many paths of a class are printed, and which part of its objects each of them has at least. */
#define PATHS_SHOWN 3
#define PATHS_PART  10

static double percent(uint64_t part, uint64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* What makes the comparison with the earlier histogram doubtful. */
static void earlier(const struct histogram *histogram, FILE *stream)
{
	if (histogram->pid_before != histogram->pid)
		fprintf(stream, "The earlier file is about process %d.\n", histogram->pid_before);
	for (unsigned int i = 0; i < HEAP_DOUBTS; i++)
		if (histogram->doubts_before >> i & 1)
			fprintf(stream, "The earlier file: %s\n", histogram_doubt_text((enum heap_doubt)i));
	if (histogram->incomplete_before && !(histogram->doubts_before >> HEAP_INTERRUPTED & 1))
		fputs("The earlier file: Part of the heap could not be read.\n", stream);
	if (histogram->has_paths && !histogram->has_paths_before)
		fputs(
		    "The earlier file has no paths, so it is not known which paths have grown; write the earlier file "
		    "with --paths.\n",
		    stream);
}

static void head(const struct histogram *histogram, FILE *stream)
{
	fprintf(stream, "%s %d, ", histogram->core ? "the core of process" : "process", histogram->pid);
	text_print(histogram->description && histogram->description[0] ? histogram->description : histogram->version,
		   stream);
	fprintf(stream, "\nheap: %s", histogram_mode_text(histogram->mode));
	if (histogram->mode == HEAP_STOPPED)
		fprintf(stream, " for %.1f ms", histogram->pause_ms);
	fprintf(stream, ", in %.2f s\n", histogram->seconds);
	if (histogram->layout_releases) {
		fputs("The layout was not made for this release, but for ", stream);
		text_print(histogram->layout_releases, stream);
		fputs(": the numbers can be wrong.\n", stream);
	}
	for (unsigned int i = 0; i < HEAP_DOUBTS; i++)
		if (histogram->doubts >> i & 1)
			fprintf(stream, "%s\n", histogram_doubt_text((enum heap_doubt)i));
	for (size_t i = 0; i < histogram->nr_path_doubts; i++)
		fprintf(stream, "%s\n", histogram->path_doubts[i]);
	if (histogram->incomplete && !(histogram->doubts >> HEAP_INTERRUPTED & 1))
		fputs("Part of the heap could not be read.\n", stream);
	if (histogram->has_before)
		earlier(histogram, stream);
}

static void totals(const struct heap_totals *totals, FILE *stream)
{
	char objects[NUMBER], free_slots[NUMBER], dead[NUMBER], size[NUMBER], pages[NUMBER], empty[NUMBER];

	number_text(totals->objects, objects);
	number_text(totals->free, free_slots);
	number_text(totals->dead, dead);
	number_text(totals->pages, pages);
	number_text(totals->empty_pages, empty);
	number_bytes(totals->page_bytes, size);
	fprintf(stream, "%s objects, %s free slots, %s dead objects that were not swept yet\n", objects, free_slots,
		dead);
	fprintf(stream, "%s pages (%s of them empty) with %s of slots; %.1f %% of the slots are in use\n\n", pages,
		empty, size, percent(totals->slots - totals->free, totals->slots));
	fprintf(stream, "%10s %12s %14s %14s %7s\n", "slot size", "pages", "slots", "in use", "%");
	for (size_t i = 0; i < totals->nr_pools; i++) {
		const struct heap_pool *pool = &totals->pools[i];
		char slots[NUMBER], used[NUMBER];

		number_text(pool->pages, pages);
		number_text(pool->slots, slots);
		number_text(pool->slots - pool->free, used);
		fprintf(stream, "%10" PRIu64 " %12s %14s %14s %7.1f\n", pool->slot_size, pages, slots, used,
			percent(pool->slots - pool->free, pool->slots));
	}
}

/* The objects of each type, and what is known of each only as a number of them. */
static void types(const struct histogram *histogram, FILE *stream)
{
	struct heap_row rows[HISTOGRAM_TYPES];
	const size_t count = histogram_types(histogram, rows);

	fprintf(stream, "\n%14s %11s  %11s %6s %12s %10s  %s\n", "objects", "in slots", "owned", "old %", "shady",
		"pinned", "type");
	for (size_t i = 0; i < count; i++) {
		const struct heap_row *row = &rows[i];
		char objects[NUMBER], slots[NUMBER], owned[NUMBER], old[NUMBER] = "?", shady[NUMBER] = "?",
								    pinned[NUMBER];

		number_text(row->objects, objects);
		number_bytes(row->slot_bytes, slots);
		number_bytes(row->owned_bytes, owned);
		if (!histogram->no_ages)
			snprintf(old, sizeof(old), "%.1f", percent(row->old, row->objects));
		if (!histogram->no_shady)
			number_text(row->shady, shady);
		number_text(row->pinned, pinned);
		fprintf(stream, "%14s %11s %s%11s %6s %12s %10s  %s\n", objects, slots, row->inexact > 0 ? ">" : " ",
			owned, old, shady, pinned, row->type);
	}
}

/* Writes how much a number has grown: "+1,000". */
static void growth(uint64_t now, uint64_t before, void (*write)(uint64_t value, char ret[NUMBER]), char ret[NUMBER])
{
	char by[NUMBER];

	write(now >= before ? now - before : before - now, by);
	snprintf(ret, NUMBER, "%s%.40s", now == before ? "" : now > before ? "+" : "-", by);
}

/* A row of a comparison: how many objects and bytes there are, and how many more than before. */
static void compared_row(const struct histogram *histogram, const char *name, const struct heap_row *row, FILE *stream)
{
	const uint64_t now = sum(row->slot_bytes, row->owned_bytes),
		       before = sum(row->before.slot_bytes, row->before.owned_bytes);
	char objects[NUMBER], more[NUMBER], size[NUMBER], more_bytes[NUMBER];

	(void)histogram;
	number_text(row->objects, objects);
	growth(row->objects, row->before.objects, number_text, more);
	number_bytes(now, size);
	growth(now, before, number_bytes, more_bytes);
	fprintf(stream, "%14s %14s %11s %11s  ", objects, more, size, more_bytes);
	text_print(name, stream);
	fprintf(stream, " (%s)\n", row->type);
}

/*
 * Prints the paths of a row: those with a good part of its objects; of a comparison, those with a good part of what it has
 * grown by.
 */
static void write_paths(const struct histogram *histogram, const struct heap_row *row, FILE *stream)
{
	const bool grown = histogram->has_before && histogram->has_paths_before;
	const int64_t whole = (int64_t)(grown ? histogram_kept_growth(row) : row->objects);

	for (size_t i = 0; i < row->nr_paths && i < PATHS_SHOWN; i++) {
		const struct heap_path *path = &row->paths[i];
		const int64_t part = (int64_t)path->objects - (grown ? (int64_t)path->before : 0);
		char objects[NUMBER], more[NUMBER] = "", least[NUMBER + 2];

		if (part <= 0 || part < whole / PATHS_PART)
			break;
		number_text(path->objects, objects);
		if (grown)
			growth(path->objects, path->before, number_text, more);
		snprintf(least, sizeof(least), "%s%s", path->before_not_known ? "> " : "", more);
		if (histogram->has_before)
			fprintf(stream, "%14s %14s %11s %11s    ", objects, least, "", "");
		else
			fprintf(stream, "%21s %11s  %11s %6s    ", objects, "", "", "");
		text_print(path->text, stream);
		fputc('\n', stream);
	}
}

static void one_row(const struct histogram *histogram, const char *name, const struct heap_row *row, FILE *stream)
{
	char objects[NUMBER], slots[NUMBER], owned[NUMBER], old[NUMBER] = "?";

	range(row->low, row->high, objects);
	number_bytes(row->slot_bytes, slots);
	number_bytes(row->owned_bytes, owned);
	if (!histogram->no_ages)
		snprintf(old, sizeof(old), "%.1f", percent(row->old, row->objects));
	fprintf(stream, "%21s %11s %s%11s %6s  ", objects, slots, row->inexact > 0 ? ">" : " ", owned, old);
	text_print(name, stream);
	fprintf(stream, " (%s)\n", row->type);
}

/* Whether a comparison has nothing to tell of a row. */
static bool is_same(const struct histogram *histogram, const struct heap_row *row)
{
	return histogram->has_before && row->objects == row->before.objects &&
	       sum(row->slot_bytes, row->owned_bytes) == sum(row->before.slot_bytes, row->before.owned_bytes) &&
	       !(histogram->has_paths_before && histogram_kept_growth(row) != 0);
}

void histogram_text(const struct histogram *histogram, size_t rows, FILE *stream)
{
	struct heap_row rest = {.type = "--all shows them"};
	void (*write_row)(const struct histogram *histogram, const char *name, const struct heap_row *row,
			  FILE *stream) = histogram->has_before ? compared_row : one_row;
	size_t shown = 0;

	head(histogram, stream);
	totals(&histogram->totals, stream);
	if (!histogram->has_before)
		types(histogram, stream);
	if (histogram->has_before)
		fprintf(stream, "\n%14s %14s %11s %11s  %s\n", "objects", "more", "bytes", "more", "class (type)");
	else
		fprintf(stream, "\n%21s %11s  %11s %6s  %s\n", "objects", "in slots", "owned", "old %", "class (type)");
	for (size_t i = 0; i < histogram->nr_rows; i++) {
		const struct heap_row *row = &histogram->rows[i];

		if (rows != 0 && (shown == rows || is_same(histogram, row))) {
			histogram_merge(&rest, row);
			continue;
		}
		write_row(histogram, row->name, row, stream);
		write_paths(histogram, row, stream);
		shown++;
	}
	if (shown < histogram->nr_rows) {
		char name[NUMBER];

		snprintf(name, sizeof(name), "%zu more", histogram->nr_rows - shown);
		write_row(histogram, name, &rest, stream);
	}
}
