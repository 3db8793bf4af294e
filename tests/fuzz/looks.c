#include "looks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/render.h"
#include "trace/merged.h"
#include "trace/progress.h"

/* How many threads have the same stack: enough to be shown as one. */
#define THREADS 3

static void violated(const char *what, int line)
{
	fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, line, what);
	abort();
}

#define REQUIRE(condition) ((condition) ? (void)0 : violated(#condition, __LINE__))

/* Makes a look of a trace: other threads have the stack of its only thread. All of them sleep. */
static void make_look(struct trace *trace, unsigned int number)
{
	struct trace_thread *threads = calloc(THREADS, sizeof(*threads));

	REQUIRE(threads);
	for (size_t i = 0; i < THREADS; i++) {
		threads[i] = trace->threads[0];
		threads[i].id = i + 1;
		threads[i].state = STATE_SLEEPING;
		if (i == 0)
			continue;
		threads[i].frames = calloc(threads[0].nr_frames + 1, sizeof(*threads[0].frames));
		REQUIRE(threads[i].frames);
		for (size_t j = 0; j < threads[0].nr_frames; j++)
			threads[i].frames[j] = threads[0].frames[j];
	}
	free(trace->threads);
	trace->threads = threads;
	trace->nr_threads = THREADS;
	trace->look.number = number;
}

static void check_text(const struct merged *merged, bool folded)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	REQUIRE(stream);
	render_merged_text(merged, 2, &(struct render_style){0}, stream);
	fclose(stream);
	REQUIRE(strlen(text) == length);
	for (const char *at = text; *at; at++)
		REQUIRE(*at == '\n' || !((unsigned char)*at < 0x20 || *at == 0x7f));
	REQUIRE(folded == (strstr(text, "\n3 threads, sleeping; same stack in all 2 looks") != NULL));
	free(text);
}

static void check_json(const struct merged *merged)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	REQUIRE(stream && render_merged_json(merged, 2, 1, stream));
	fclose(stream);
	REQUIRE(strlen(text) == length && strchr(text, '\n') == text + length - 1);
	free(text);
}

void looks_check(struct trace *first, struct trace *second)
{
	const bool complete = first->threads[0].verdict == VERDICT_COMPLETE;
	struct merged merged = {0};

	make_look(first, 1);
	make_look(second, 2);
	REQUIRE(trace_compare(first, second));
	REQUIRE(second->look.nr_gone == 0);
	for (size_t i = 0; i < THREADS; i++)
		REQUIRE(second->threads[i].progress.moved == (complete ? MOVED_SAME_STACK : MOVED_NOT_KNOWN));
	REQUIRE(merged_add(&merged, first) && merged_add(&merged, second) && merged_finish(&merged));
	REQUIRE(merged.nr_threads == THREADS && merged.nr_kept == 1);
	for (size_t i = 0; i < THREADS; i++)
		REQUIRE(merged.threads[i].nr_stacks == 1 && merged.threads[i].nr_looks == 2);
	check_text(&merged, complete);
	check_json(&merged);
	merged_clear(&merged);
}
