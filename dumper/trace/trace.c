#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "target/call.h"

struct trace_pool {
	struct trace_pool *next;
	size_t used, capacity;
	char data[];
};

#define POOL_BLOCK (64u * 1024)

struct trace *trace_create(void)
{
	return calloc(1, sizeof(struct trace));
}

void trace_destroy(struct trace *trace)
{
	if (!trace)
		return;
	for (size_t i = 0; i < trace->nr_threads; i++) {
		struct trace_thread *thread = &trace->threads[i];

		for (size_t j = 0; j < thread->nr_frames; j++)
			trace_details_destroy(thread->frames[j].details);
		free(thread->frames);
		free(thread->holds);
		if (thread->call)
			call_clear(thread->call);
		free(thread->call);
	}
	free(trace->threads);
	free(trace->look.gone);
	trace_arguments_destroy(trace->arguments);
	for (size_t i = 0; i < trace->nr_deadlocks; i++)
		free(trace->deadlocks[i].entries);
	free(trace->deadlocks);
	while (trace->pool) {
		struct trace_pool *pool = trace->pool;

		trace->pool = pool->next;
		free(pool);
	}
	free(trace);
}

static size_t thread_bytes(const struct trace_thread *thread)
{
	size_t bytes = thread->nr_frames * sizeof(*thread->frames) + thread->nr_holds * sizeof(*thread->holds);

	for (size_t i = 0; i < thread->nr_frames; i++)
		bytes += trace_details_bytes(thread->frames[i].details);
	if (thread->call)
		bytes += sizeof(*thread->call) + call_bytes(thread->call);
	return bytes;
}

size_t trace_bytes(const struct trace *trace)
{
	size_t bytes = sizeof(*trace) + trace->pool_size + trace->nr_threads * sizeof(*trace->threads) +
		       trace->look.nr_gone * sizeof(*trace->look.gone) + trace_arguments_bytes(trace->arguments) +
		       trace->nr_deadlocks * sizeof(*trace->deadlocks);

	for (size_t i = 0; i < trace->nr_threads; i++)
		bytes += thread_bytes(&trace->threads[i]);
	for (size_t i = 0; i < trace->nr_deadlocks; i++)
		bytes += trace->deadlocks[i].count * sizeof(*trace->deadlocks[i].entries);
	return bytes;
}

const char *trace_string(struct trace *trace, const char *text)
{
	struct trace_pool *pool = trace->pool;
	size_t size = text ? strlen(text) + 1 : 0;

	if (!text)
		return NULL;
	if (!pool || pool->capacity - pool->used < size) {
		size_t capacity = size > POOL_BLOCK ? size : POOL_BLOCK;

		pool = trace->pool_size + capacity <= TRACE_STRINGS_MAX ? malloc(sizeof(*pool) + capacity) : NULL;
		if (!pool)
			return NULL;
		trace->pool_size += capacity;
		pool->next = trace->pool;
		pool->used = 0;
		pool->capacity = capacity;
		trace->pool = pool;
	}
	memcpy(pool->data + pool->used, text, size);
	pool->used += size;
	return pool->data + pool->used - size;
}

const char *trace_state_name(enum trace_state state)
{
	static const char *const names[] = {
	    [STATE_UNKNOWN] = "unknown",
	    [STATE_RUNNING] = "running",
	    [STATE_WAITING_GVL] = "waiting_gvl",
	    [STATE_SLEEPING] = "sleeping",
	    [STATE_SLEEPING_FOREVER] = "sleeping_forever",
	    [STATE_BLOCKED] = "blocked",
	    [STATE_DEAD] = "dead",
	    [STATE_SUSPENDED] = "suspended",
	};

	return names[state];
}

const char *trace_layout_source_name(enum layout_source source)
{
	static const char *const names[] = {
	    [LAYOUT_BY_BUILD_ID] = "build-id", [LAYOUT_BY_VERSION] = "version", [LAYOUT_GENERATED] = "generated",
	    [LAYOUT_GIVEN] = "given",	       [LAYOUT_NEAREST] = "nearest",
	};

	return names[source];
}

const char *trace_version_source_name(enum version_source source)
{
	static const char *const names[] = {
	    [VERSION_OF_RUBY] = "ruby",	    [VERSION_IN_MEMORY] = "memory", [VERSION_BY_NAME] = "file-name",
	    [VERSION_OF_LAYOUT] = "layout", [VERSION_GIVEN] = "given",	    [VERSION_FITS] = "fits",
	};

	return names[source];
}

const char *trace_frame_kind_name(enum trace_frame_kind kind)
{
	static const char *const names[] = {
	    [TRACE_RUBY] = "ruby",
	    [TRACE_CFUNC] = "cfunc",
	    [TRACE_UNREADABLE] = "unreadable",
	    [TRACE_NATIVE] = "native",
	};

	return names[kind];
}

static const struct {
	const char *name, *text;
} missing_texts[] = {
    [LIST_COMPLETE] = {NULL, NULL},
    [LIST_NOT_KNOWN] = {"not-known", "rbdump does not know how to find the list in the memory of this Ruby"},
    [LIST_BROKEN] = {"list-broken", "the list was changing, or it is incomplete"},
    [LIST_TOO_LONG] = {"too-many", "the list is too long for rbdump"},
    [LIST_OUT_OF_TIME] = {"out-of-time", "there was no time left to read the list"},
    [LIST_HEAP_CUT] = {"heap-cut", "not all of Ruby's heap could be searched"},
    [LIST_MISSED] = {"missed", "some fibers were not found"},
};

const char *trace_missing_name(enum list_missing missing)
{
	return missing_texts[missing].name;
}

const char *trace_missing_text(enum list_missing missing)
{
	return missing_texts[missing].text;
}

struct place {
	size_t rank, index;
};

static int by_rank_then_index(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

bool trace_order(struct trace *trace, const size_t *ranks)
{
	struct trace_thread *ordered = calloc(trace->nr_threads + 1, sizeof(*ordered));
	struct place *places = calloc(trace->nr_threads + 1, sizeof(*places));

	if (!ordered || !places) {
		free(ordered);
		free(places);
		return false;
	}
	for (size_t i = 0; i < trace->nr_threads; i++)
		places[i] = (struct place){ranks[i], i};
	qsort(places, trace->nr_threads, sizeof(*places), by_rank_then_index);
	for (size_t i = 0; i < trace->nr_threads; i++)
		ordered[i] = trace->threads[places[i].index];
	free(places);
	free(trace->threads);
	trace->threads = ordered;
	return true;
}

const struct trace_frame *trace_next_of_ruby(const struct trace_thread *thread, size_t index)
{
	while (index < thread->nr_frames && thread->frames[index].kind == TRACE_NATIVE)
		index++;
	return index < thread->nr_frames ? &thread->frames[index] : NULL;
}

int trace_exit_status(const struct trace *trace)
{
	for (size_t i = 0; i < trace->nr_threads; i++)
		if (trace->threads[i].verdict != VERDICT_COMPLETE)
			return EXIT_PARTIAL;
	return trace->threads_missing == LIST_COMPLETE && trace->fibers_missing == LIST_COMPLETE ? EXIT_COMPLETE
												 : EXIT_PARTIAL;
}
