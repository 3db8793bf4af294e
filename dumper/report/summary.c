#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/flat.h"
#include "report/format.h"
#include "report/thread_spans.h"
#include "report/wakes.h"

/* The number of rows in a table. */
#define ROWS 30u

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static uint64_t weight_of(const struct profile *profile)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profile->nr_spans; i++)
		sum += profile->spans[i].weight_ns;
	return sum;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void write_states(const struct profile *profile, uint64_t whole, FILE *stream)
{
	uint64_t states[SAMPLE_STATES] = {0}, estimated = 0;

	for (size_t i = 0; i < profile->nr_spans; i++) {
		states[profile->spans[i].state] += profile->spans[i].weight_ns;
		estimated += profile->spans[i].estimated ? profile->spans[i].weight_ns : 0;
	}
	fprintf(stream, "%.3f s", seconds(whole));
	for (int state = 0; state < SAMPLE_STATES; state++)
		if (states[state] > 0)
			fprintf(stream, ", %s %.1f %%", sample_state_name((enum sample_state)state),
				percent(states[state], whole));
	if (estimated > 0)
		fprintf(stream, "; stacks estimated for %.1f %%", percent(estimated, whole));
	fputc('\n', stream);
}

/* Says how many processes were sampled in another mode than the recording: in one other mode at most. */
static void write_other_modes(const struct profile *profile, FILE *stream)
{
	const char *mode = NULL;
	size_t count = 0;

	for (size_t i = 0; i < profile->nr_processes; i++) {
		if (!profile->processes[i].mode || strcmp(profile->processes[i].mode, profile->mode) == 0)
			continue;
		mode = profile->processes[i].mode;
		count++;
	}
	if (!mode)
		return;
	fprintf(stream, " (%zu process%s in mode ", count, count == 1 ? "" : "es");
	text_print(mode, stream);
	fputc(')', stream);
}

static void write_head(const struct profile *profile, const struct format_options *options, uint64_t whole,
		       FILE *stream)
{
	const struct profile_counts *counts = &profile->counts;

	text_print(options->title, stream);
	fprintf(stream, ": %.3f s at %g Hz, ", seconds(profile->duration_ns), profile->rate);
	text_print(profile->mode, stream);
	write_other_modes(profile, stream);
	fprintf(stream, ", %zu process%s\n", profile->nr_processes, profile->nr_processes == 1 ? "" : "es");
	fprintf(stream,
		"samples %" PRIu64 ": %" PRIu64 " complete, %" PRIu64 " torn, %" PRIu64 " truncated, %" PRIu64
		" unreadable; late %" PRIu64,
		counts->samples, counts->verdicts[VERDICT_COMPLETE], counts->verdicts[VERDICT_TORN],
		counts->verdicts[VERDICT_TRUNCATED], counts->verdicts[VERDICT_UNREADABLE], counts->late);
	if (counts->missed > 0)
		fprintf(stream, " (missed: %" PRIu64 ")", counts->missed);
	fprintf(stream, " of %" PRIu64 " due (%.1f %%)%s\n", profile_due(counts), 100.0 * profile_late_share(counts),
		profile->cut ? "; the recording was not finished, or is damaged" : "");
	if (counts->skipped > 0)
		fprintf(stream,
			"sampled %.0f times per second instead of %g: %" PRIu64
			" samples were skipped because of the CPU time limit\n",
			profile->rate * profile_share_taken(counts), profile->rate, counts->skipped);
	if (options->remark) {
		text_print(options->remark, stream);
		fputc('\n', stream);
	}
	fprintf(stream, "%s, sum of threads: ", options->by);
	write_states(profile, whole, stream);
}

static void write_place(const struct profile *profile, const struct flat_row *row, bool line, FILE *stream)
{
	const struct profile_function *function = &profile->functions[row->function];

	text_print(function->name, stream);
	/* A C function has no file; its line is the one that it was called from. */
	if (!function->path && line && row->line != 0)
		fprintf(stream, "  called at line %" PRId64, row->line);
	if (!function->path)
		return;
	fputs("  ", stream);
	text_print(function->path, stream);
	if (line && row->line != 0)
		fprintf(stream, ":%" PRId64, row->line);
	else if (!line && function->first_line != 0)
		fprintf(stream, ":%" PRId64, function->first_line);
}

static void write_rows(const struct profile *profile, const struct flat *flat, uint64_t whole, bool lines, FILE *stream)
{
	if (flat->count == 0)
		return;
	fputs(lines ? "\n     self          line\n" : "\n     self           total          method\n", stream);
	for (size_t i = 0; i < flat->count && i < ROWS; i++) {
		const struct flat_row *row = &flat->rows[i];

		fprintf(stream, "%9.3f s %5.1f %%", seconds(row->self), percent(row->self, whole));
		if (!lines)
			fprintf(stream, " %9.3f s %5.1f %%", seconds(row->total), percent(row->total, whole));
		fputs("  ", stream);
		write_place(profile, row, lines, stream);
		fputc('\n', stream);
	}
	if (flat->count > ROWS)
		fprintf(stream, "and %zu more\n", flat->count - ROWS);
}

/* ---- --diff: shares, because the two profiles may have taken different times */

struct change {
	const struct profile *profile; /* that has the function */
	uint32_t function;
	double self, before; /* percent */
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static int by_change(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	double of_x = x->self > x->before ? x->self - x->before : x->before - x->self;
	double of_y = y->self > y->before ? y->self - y->before : y->before - y->self;

	return of_x > of_y ? -1 : of_x < of_y;
}

static int by_place(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	const struct profile_function *f = &x->profile->functions[x->function],
				      *g = &y->profile->functions[y->function];
	int order = strcmp(f->name, g->name);

	return order != 0 ? order : strcmp(f->path ? f->path : "", g->path ? g->path : "");
}

static size_t add_changes(const struct profile *profile, const struct flat *flat, bool before, struct change *changes)
{
	uint64_t whole = weight_of(profile);

	for (size_t i = 0; i < flat->count; i++) {
		double share = percent(flat->rows[i].self, whole);

		changes[i] = (struct change){profile, flat->rows[i].function, before ? 0 : share, before ? share : 0};
	}
	return flat->count;
}

/* Merges the changes of equal functions in both profiles. */
static size_t merge_changes(struct change *changes, size_t count)
{
	size_t kept = 0;

	if (count > 0)
		qsort(changes, count, sizeof(*changes), by_place);
	for (size_t i = 0; i < count; i++) {
		const struct profile_function *of = &changes[i].profile->functions[changes[i].function];
		struct change *last = kept > 0 ? &changes[kept - 1] : NULL;

		if (last && strcmp(last->profile->functions[last->function].name, of->name) == 0 &&
		    same_text(last->profile->functions[last->function].path, of->path)) {
			last->self += changes[i].self;
			last->before += changes[i].before;
		} else {
			changes[kept++] = changes[i];
		}
	}
	if (kept > 0)
		qsort(changes, kept, sizeof(*changes), by_change);
	return kept;
}

static bool write_changes(const struct profile *profile, const struct profile *before, FILE *stream)
{
	struct flat now = {0}, then = {0};
	bool enough = flat_by_function(profile, &now) && flat_by_function(before, &then);
	struct change *changes = enough ? calloc(now.count + then.count + 1, sizeof(*changes)) : NULL;
	bool written = changes;
	size_t count;

	if (changes) {
		count = add_changes(profile, &now, false, changes);
		count += add_changes(before, &then, true, changes + count);
		count = merge_changes(changes, count);
		fputs("\n  change   before      now   method (before and now: percent of all self time)\n", stream);
		for (size_t i = 0; i < count && i < ROWS; i++) {
			const struct flat_row row = {.function = changes[i].function};

			fprintf(stream, "%+7.1f  %5.1f %%  %5.1f %%   ", changes[i].self - changes[i].before,
				changes[i].before, changes[i].self);
			write_place(changes[i].profile, &row, false, stream);
			fputc('\n', stream);
		}
	}
	flat_clear(&now);
	flat_clear(&then);
	free(changes);
	return written;
}

/* ---- who has woken whom */

static void write_waker(const struct profile *profile, const struct profile_waker *waker, FILE *stream)
{
	const uint32_t thread = wakes_thread_of(profile, waker);
	struct text text = {0};

	if (thread != UINT32_MAX)
		thread_spans_add_title(profile, &profile->threads[thread], &text);
	else
		text_format(&text, "%s %d", waker->name ? waker->name : "process", waker->pid);
	if (thread == UINT32_MAX && waker->tid != waker->pid)
		text_format(&text, ": thread %d", waker->tid);
	if (text.data)
		text_print(text.data, stream);
	text_clear(&text);
}

static bool write_wakes(const struct profile *profile, FILE *stream)
{
	struct wakes wakes;

	if (!wakes_collect(profile, &wakes))
		return false;
	if (wakes.count > 0)
		fputs("\n   waited       times  thread <- thread that woke it\n", stream);
	for (size_t i = 0; i < wakes.count && i < ROWS; i++) {
		const struct wake *wake = &wakes.of[i];
		struct text text = {0};

		fprintf(stream, "%9.3f s %9" PRIu64 "  ", seconds(wake->waited_ns), wake->count);
		thread_spans_add_title(profile, &profile->threads[wake->thread], &text);
		if (text.data)
			text_print(text.data, stream);
		text_clear(&text);
		fputs(" <- ", stream);
		write_waker(profile, &profile->wakers[wake->waker], stream);
		fputc('\n', stream);
	}
	if (wakes.count > ROWS)
		fprintf(stream, "and %zu more\n", wakes.count - ROWS);
	wakes_clear(&wakes);
	return true;
}

bool format_summary(const struct profile *profile, const struct format_options *options, FILE *stream)
{
	uint64_t whole = weight_of(profile);
	struct flat flat = {0};

	write_head(profile, options, whole, stream);
	if (options->before)
		return write_changes(profile, options->before, stream);
	if (!flat_by_function(profile, &flat))
		return false;
	write_rows(profile, &flat, whole, false, stream);
	flat_clear(&flat);
	if (!flat_by_line(profile, &flat))
		return false;
	write_rows(profile, &flat, whole, true, stream);
	flat_clear(&flat);
	return write_wakes(profile, stream);
}
