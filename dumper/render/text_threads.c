#include <stdlib.h>
#include <string.h>

#include "render/call.h"
#include "render/fold.h"
#include "render/fold_text.h"
#include "render/render.h"
#include "render/text_parts.h"
#include "render/waits_text.h"
#include "trace/wait_graph.h"

static struct waits_style style_of(const struct palette *palette)
{
	return (struct waits_style){palette->reset, palette->bold, palette->bad};
}

void text_put_deadlocks(const struct trace *trace, const struct palette *palette, FILE *stream)
{
	const struct waits_style style = style_of(palette);

	waits_text_deadlocks(trace, &style, stream);
}

/* What a thread waits for: Ruby's lock, and the kernel's system call. */
static void put_waits(const struct trace *trace, size_t index, const struct palette *palette, FILE *stream)
{
	const struct waits_style style = style_of(palette);
	const struct trace_thread *thread = &trace->threads[index];

	waits_text_entry(trace, index, &style, stream);
	if (thread->call && !wait_covers_call(&thread->wait))
		call_print(thread->call, palette->dim, palette->reset, stream);
}

static void put_thread(const struct trace *trace, size_t index, const struct render_style *style, bool with_ractor,
		       FILE *stream)
{
	const struct palette *palette = text_palette(style->colour);
	const struct trace_thread *thread = &trace->threads[index];

	fputc('\n', stream);
	text_put_subject(thread, with_ractor, palette, stream);
	if (!thread->suspended) {
		text_put_state(thread->state, palette, stream);
		if (thread->resumed_by != 0)
			fprintf(stream, ", in fiber 0x%llx", (unsigned long long)thread->fiber);
	}
	if (thread->resumed_by != 0)
		fprintf(stream, ", resumed by 0x%llx", (unsigned long long)thread->resumed_by);
	text_put_progress(&thread->progress, 1, palette, stream);
	text_put_verdict(thread, palette, stream);
	fputc('\n', stream);
	put_waits(trace, index, palette, stream);
	text_put_frames(thread->frames, thread->nr_frames, style->frames, palette, stream);
}

/* The most different waits of threads that are shown as one. */
#define WAITS_SHOWN 3

/* What put_waits() writes; NULL if there is not enough memory. The caller frees it. */
static char *waits_of(const struct trace *trace, size_t index, const struct palette *palette)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	if (!stream)
		return NULL;
	put_waits(trace, index, palette, stream);
	if (fclose(stream) == 0)
		return text;
	free(text);
	return NULL;
}

bool text_put_waits(const struct trace *trace, const size_t *indexes, size_t count, const struct palette *palette,
		    FILE *stream)
{
	char *shown[WAITS_SHOWN];
	size_t nr_shown = 0, more = 0;

	for (size_t i = 0; i < count; i++) {
		char *text = waits_of(trace, indexes[i], palette);
		bool known = text == NULL || text[0] == '\0';

		for (size_t j = 0; j < nr_shown && !known; j++)
			known = strcmp(shown[j], text) == 0;
		if (!known && nr_shown < WAITS_SHOWN) {
			fputs(text, stream);
			shown[nr_shown++] = text;
			continue;
		}
		more += !known;
		free(text);
	}
	if (more > 0)
		fprintf(stream, "%s  %zu more in this group wait for other things: --all shows all waits%s\n",
			palette->dim, more, palette->reset);
	for (size_t i = 0; i < nr_shown; i++)
		free(shown[i]);
	return nr_shown > 0;
}

void text_put_lasting_waits(const struct trace *trace, size_t index, const struct palette *palette, FILE *stream)
{
	const struct waits_style style = style_of(palette);

	waits_text_lasting(trace, index, &style, stream);
}

/* Threads that are shown as one. */
static void put_fold(const struct trace *trace, const struct fold *of, const struct render_style *style,
		     bool with_ractor, FILE *stream)
{
	const struct palette *palette = text_palette(style->colour);
	const struct trace_thread *threads = trace->threads, *first = &threads[of->members[0]];
	struct trace_progress progress = first->progress;

	for (size_t i = 1; i < of->count; i++) {
		progress.has_cpu &= threads[of->members[i]].progress.has_cpu;
		progress.cpu_ns += threads[of->members[i]].progress.cpu_ns;
	}
	fputc('\n', stream);
	text_put_folded(threads, of, with_ractor, palette, stream);
	text_put_progress(&progress, of->count, palette, stream);
	fputc('\n', stream);
	text_put_waits(trace, of->members, of->count, palette, stream);
	text_put_frames(first->frames, first->nr_frames, style->frames, palette, stream);
}

/* If there is not enough memory to fold threads, each is shown in its place. */
void text_put_threads(const struct trace *trace, const struct render_style *style, bool with_ractor, FILE *stream)
{
	struct fold_entry *entries = calloc(trace->nr_threads + 1, sizeof(*entries));
	struct folding folding = {0};
	bool folded;

	for (size_t i = 0; entries && i < trace->nr_threads; i++)
		entries[i] =
		    fold_entry_of(trace, &trace->threads[i], i + 1 < trace->nr_threads ? &trace->threads[i + 1] : NULL);
	folded = entries && fold(entries, trace->nr_threads, style->all, &folding);
	for (size_t i = 0; folded && i < folding.nr_folds; i++) {
		const struct fold *of = &folding.folds[i];

		if (of->count == 1)
			put_thread(trace, of->members[0], style, with_ractor, stream);
		else
			put_fold(trace, of, style, with_ractor, stream);
	}
	for (size_t i = 0; !folded && i < trace->nr_threads; i++)
		put_thread(trace, i, style, with_ractor, stream);
	folding_clear(&folding);
	free(entries);
}
