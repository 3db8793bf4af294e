#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "render/render.h"
#include "synthetic_looks.h"
#include "trace/progress.h"

static void fill(struct trace_thread *thread, const struct said *said)
{
	*thread = (struct trace_thread){
	    .id = said->id,
	    .tid = (pid_t)said->id,
	    .ractor = 1,
	    .state = said->state,
	    .verdict = said->verdict,
	    .reason = said->verdict == VERDICT_COMPLETE ? REASON_NONE : REASON_MOVED,
	    .nr_frames = strlen(said->stack),
	    .frames = calloc(strlen(said->stack) + 1, sizeof(*thread->frames)),
	    .progress = {.has_cpu = true, .cpu_ns = said->cpu_ms * 1000000, .slept = said->slept, .fresh = said->fresh},
	};
	assert_non_null(thread->frames);
	for (size_t i = 0; i < thread->nr_frames; i++)
		thread->frames[i] = (struct trace_frame){.kind = TRACE_RUBY,
							 .label = "m",
							 .name = "m",
							 .path = "a.rb",
							 .has_line = true,
							 .line = said->stack[i]};
}

struct trace *look_of(const struct trace *before, const struct said *said, size_t count)
{
	struct trace *ret = trace_create();

	assert_non_null(ret);
	ret->pid = 4242;
	ret->ruby_version = "9.8.7";
	ret->pauses = 1;
	ret->pause_us = 100 + (double)count;
	ret->look.number = before ? before->look.number + 1 : 1;
	ret->look.since_ns = before ? 1000000000 : 0;
	ret->threads = calloc(count + 1, sizeof(*ret->threads));
	assert_non_null(ret->threads);
	ret->nr_threads = count;
	for (size_t i = 0; i < count; i++)
		fill(&ret->threads[i], &said[i]);
	if (before)
		assert_true(trace_compare(before, ret));
	return ret;
}

void assert_merged(struct merged *merged, unsigned int wanted, const char *expected)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	assert_non_null(stream);
	assert_true(merged_finish(merged));
	render_merged_text(merged, wanted, &(struct render_style){0}, stream);
	fclose(stream);
	assert_string_equal(text, expected);
	free(text);
}
