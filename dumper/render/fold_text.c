#include "render/fold_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* How many names, ranges of one name, ranges of tids, and fibers are listed. */
#define NAMES_LISTED  6
#define RANGES_LISTED 8
#define FIBERS_LISTED 6

/* A longer number is a part of the name like any other. */
#define DIGITS_MAX 18

/* A name, and the last number in it. */
struct numbered {
	const char *name;  /* NULL: the thread has no name */
	size_t before;	   /* the length of what is before the number; without a number, the length of the name */
	size_t digits;	   /* the length of the number; 0: there is none */
	const char *after; /* what is after the number */
	uint64_t number;
};

static struct numbered split(const char *name)
{
	struct numbered ret = {.name = name, .after = ""};
	size_t end;

	if (!name)
		return ret;
	ret.before = end = strlen(name);
	while (end > 0 && !isdigit((unsigned char)name[end - 1]))
		end--;
	while (ret.digits < end && isdigit((unsigned char)name[end - ret.digits - 1]))
		ret.digits++;
	if (ret.digits == 0 || ret.digits > DIGITS_MAX) {
		ret.digits = 0;
		return ret;
	}
	ret.before = end - ret.digits;
	ret.after = name + end;
	ret.number = strtoull(name + ret.before, NULL, 10);
	return ret;
}

/* Compares all but the numbers. Threads without a name come last. */
static int compare_words(const struct numbered *a, const struct numbered *b)
{
	int order;

	if (!a->name || !b->name)
		return !a->name - !b->name;
	order = memcmp(a->name, b->name, a->before < b->before ? a->before : b->before);
	if (order == 0 && a->before != b->before)
		order = a->before < b->before ? -1 : 1;
	if (order == 0)
		order = strcmp(a->after, b->after);
	return order != 0 ? order : (a->digits > 0) - (b->digits > 0);
}

static int by_words_then_number(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	const int order = compare_words(x, y);

	if (order != 0)
		return order;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->digits < y->digits ? -1 : x->digits > y->digits;
}

/* Whether a name is the one that comes after another: 9 and 10, 09 and 10, but not 09 and 010. */
static bool follows(const struct numbered *before, const struct numbered *now)
{
	const bool padded = before->name[before->before] == '0' || now->name[now->before] == '0';

	return now->number == before->number + 1 && (!padded || before->digits == now->digits);
}

/* The number of a name, as it is written there. */
static void put_number(const struct numbered *of, FILE *stream)
{
	fprintf(stream, "%.*s", (int)of->digits, of->name + of->before);
}

static void put_name(const char *name, FILE *stream)
{
	fputc('"', stream);
	text_print(name, stream);
	fputc('"', stream);
}

/* One end of a range: the whole name if anything follows the number, so that each name can be read as it is. */
static void put_end(const struct numbered *of, FILE *stream)
{
	if (of->after[0])
		put_name(of->name, stream);
	else
		put_number(of, stream);
}

/* Names that differ only in their number: `"puma srv tp 003 … 007, 009"`. */
static void put_numbers(const struct numbered *names, size_t count, FILE *stream)
{
	const bool whole = names[0].after[0] != '\0';
	size_t ranges = 0, end;

	if (!whole) {
		fputc('"', stream);
		/* The name up to its first number, with that number. */
		text_print(names[0].name, stream);
	}
	for (size_t first = 0; first < count; first = end) {
		for (end = first + 1; end < count && follows(&names[end - 1], &names[end]); end++)
			;
		if (ranges == RANGES_LISTED) {
			fprintf(stream, "%s and %zu more", whole ? "" : "\"", count - first);
			return;
		}
		if (ranges++ > 0)
			fputs(", ", stream);
		if (whole || first > 0)
			put_end(&names[first], stream);
		if (end == first + 1)
			continue;
		fputs(end == first + 2 ? ", " : " … ", stream);
		put_end(&names[end - 1], stream);
	}
	if (!whole)
		fputc('"', stream);
}

/* Names that are the same, except for their numbers. */
static void put_alike(const struct numbered *names, size_t count, FILE *stream)
{
	if (!names[0].name) {
		fprintf(stream, "%zu without a name", count);
	} else if (names[0].digits > 0 && count > 1) {
		put_numbers(names, count, stream);
	} else {
		put_name(names[0].name, stream);
		if (count > 1)
			fprintf(stream, " (%zu)", count);
	}
}

/* All names. If no thread has a name, nothing. */
static void put_names(const struct numbered *names, size_t count, FILE *stream)
{
	size_t listed = 0, end;

	for (size_t first = 0; first < count && names[0].name; first = end) {
		for (end = first + 1; end < count && compare_words(&names[first], &names[end]) == 0; end++)
			;
		fputs(listed > 0 ? ", " : ": ", stream);
		if (listed++ == NAMES_LISTED) {
			fprintf(stream, "and %zu more", count - first);
			return;
		}
		put_alike(&names[first], end - first, stream);
	}
}

static int by_tid(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The tids, ascending. If none is known, nothing. */
static void put_tids(const pid_t *tids, size_t count, FILE *stream)
{
	size_t ranges = 0, end;

	for (size_t first = 0; first < count; first = end) {
		for (end = first + 1; end < count && tids[end] == tids[end - 1] + 1; end++)
			;
		fputs(first > 0 ? ", " : " (tids ", stream);
		if (ranges++ == RANGES_LISTED) {
			fprintf(stream, "and %zu more", count - first);
			break;
		}
		fprintf(stream, "%d", tids[first]);
		if (end > first + 1)
			fprintf(stream, "%s%d", end == first + 2 ? ", " : " … ", tids[end - 1]);
	}
	if (count > 0)
		fputc(')', stream);
}

/* Names and tids. If there is not enough memory to sort them, nothing. */
static void put_list(const struct trace_thread *threads, const struct fold *of, FILE *stream)
{
	struct numbered *names = calloc(of->count, sizeof(*names));
	pid_t *tids = calloc(of->count, sizeof(*tids));
	size_t nr_tids = 0;

	for (size_t i = 0; names && tids && i < of->count; i++) {
		const struct trace_thread *thread = &threads[of->members[i]];

		names[i] = split(thread->name);
		if (thread->tid != 0)
			tids[nr_tids++] = thread->tid;
	}
	if (names && tids) {
		qsort(names, of->count, sizeof(*names), by_words_then_number);
		qsort(tids, nr_tids, sizeof(*tids), by_tid);
		put_names(names, of->count, stream);
		put_tids(tids, nr_tids, stream);
	}
	free(names);
	free(tids);
}

static void put_fibers(const struct trace_thread *threads, const struct fold *of, bool with_ractor,
		       const struct palette *palette, FILE *stream)
{
	const struct trace_thread *first = &threads[of->members[0]];

	fprintf(stream, "%s%zu fibers%s ", palette->bold, of->count, palette->reset);
	text_put_fiber_of(first, with_ractor, stream);
	if (first->resumed_by != 0)
		fprintf(stream, ", resumed by 0x%llx", (unsigned long long)first->resumed_by);
	for (size_t i = 0; i < of->count && i < FIBERS_LISTED; i++)
		fprintf(stream, "%s 0x%llx", i > 0 ? "," : ":", (unsigned long long)threads[of->members[i]].fiber);
	if (of->count > FIBERS_LISTED)
		fprintf(stream, " and %zu more", of->count - FIBERS_LISTED);
}

void text_put_folded(const struct trace_thread *threads, const struct fold *of, bool with_ractor,
		     const struct palette *palette, FILE *stream)
{
	const struct trace_thread *first = &threads[of->members[0]];

	if (first->suspended) {
		put_fibers(threads, of, with_ractor, palette, stream);
		return;
	}
	fprintf(stream, "%s%zu threads%s, ", palette->bold, of->count, palette->reset);
	text_put_state(first->state, palette, stream);
	if (with_ractor)
		fprintf(stream, ", of ractor %llu", (unsigned long long)first->ractor);
	put_list(threads, of, stream);
}
