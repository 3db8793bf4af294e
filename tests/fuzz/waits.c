#include "waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locks.h"
#include "render/render.h"
#include "session/waits.h"
#include "trace/wait_graph.h"

/* How long the waits of one image may take. An image is run many thousand times. */
#define LIMIT_NS 5000000L

/* The entries: the two threads of a deadlock, then one for each other method, which are fibers of the second thread. */
enum { ENTRIES = LOCK_FRAMES };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static const char *const methods[LOCK_FRAMES] = {
    [LOCK_FIRST] = "Thread::Mutex#lock", [LOCK_SECOND] = "Thread::Mutex#synchronize",
    [LOCK_MONITOR] = "Monitor#enter",	 [LOCK_CONDITION] = "Thread::ConditionVariable#wait",
    [LOCK_QUEUE] = "Thread::Queue#pop",	 [LOCK_SIZED_QUEUE] = "Thread::SizedQueue#push",
    [LOCK_JOIN] = "Thread#join",
};

/* A thread, in the one frame of a method that waits. Entries behind the first two are threads that nobody knows. */
static void make_entry(const struct layout *layout, size_t index, struct trace_thread *entry, struct stack *stack)
{
	entry->id = index == 0 ? IMAGE_THREAD : locks_thread(layout) + (index > 1 ? index : 0);
	entry->fiber = LOCK_FIBERS + index;
	entry->ractor = 1;
	entry->state = STATE_SLEEPING_FOREVER;
	entry->verdict = VERDICT_COMPLETE;
	entry->wait.holder_entry = WAIT_NO_ENTRY;
	entry->frames = calloc(1, sizeof(*entry->frames));
	require(entry->frames);
	entry->nr_frames = 1;
	entry->frames[0] = (struct trace_frame){
	    .kind = TRACE_CFUNC,
	    .name = methods[index],
	    .label = methods[index],
	    .address = locks_frame(layout, (enum lock_frame)index),
	};
	stack->ec = locks_context(layout);
}

/* The execution context of the first thread. */
static uint64_t first_context(const struct ruby *ruby)
{
	struct access access = ruby_access(ruby);

	return layout_has(ruby->layout, F_thread_ec) ? access_member(&access, IMAGE_THREAD, F_thread_ec) : IMAGE_THREAD;
}

static struct trace *make_trace(const struct ruby *ruby, struct stack *stacks)
{
	struct trace *trace = trace_create();

	require(trace);
	trace->threads = calloc(ENTRIES, sizeof(*trace->threads));
	require(trace->threads);
	trace->nr_threads = ENTRIES;
	trace->ruby_version = ruby->layout->version;
	trace->waits_of_one_moment = true;
	for (size_t i = 0; i < ENTRIES; i++)
		make_entry(ruby->layout, i, &trace->threads[i], &stacks[i]);
	stacks[0].ec = first_context(ruby);
	return trace;
}

/* Each entry of a circle waits for the next one, for certain. */
static void check_deadlock(const struct trace *trace, const struct trace_deadlock *deadlock)
{
	require(deadlock->count >= 1 && deadlock->count <= ENTRIES);
	require(!deadlock->holder_ended || deadlock->count == 1);
	for (size_t i = 0; i < deadlock->count; i++) {
		const size_t entry = deadlock->entries[i], next = deadlock->entries[(i + 1) % deadlock->count];

		require(entry < ENTRIES && trace->threads[entry].wait.confirmed);
		require(deadlock->holder_ended ? trace->threads[entry].wait.holder_state == HOLDER_ENDED
					       : wait_graph_next(trace, entry) == next);
	}
}

static void check_output(const struct trace *trace)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	require(stream && render_json(trace, stream));
	fclose(stream);
	require(strlen(text) == length && strchr(text, '\n') == text + length - 1);
	free(text);
	stream = open_memstream(&text, &length);
	require(stream);
	render_text(trace, &(struct render_style){0}, stream);
	fclose(stream);
	for (const char *at = text; *at; at++)
		require(*at == '\n' || !((unsigned char)*at < 0x20 || *at == 0x7f));
	free(text);
}

struct waits_outcome waits_run(const struct ruby *ruby)
{
	struct stack stacks[ENTRIES] = {{0}};
	struct trace *trace = make_trace(ruby, stacks);
	struct waits_outcome ret = {0};

	memory_count_own_time(ruby->memory); /* and not that of whoever else runs */
	memory_limit(ruby->memory, LIMIT_NS);
	require(session_waits_read(ruby, trace, stacks, ENTRIES));
	memory_limit(ruby->memory, 0);
	require(wait_graph_find(trace));
	for (size_t i = 0; i < ENTRIES; i++) {
		const struct trace_wait *wait = &trace->threads[i].wait;

		ret.kinds |= 1u << wait->kind;
		require((wait->holder_state == HOLDER_KNOWN) == (wait->holder_entry != WAIT_NO_ENTRY));
		require(wait->holder_entry == WAIT_NO_ENTRY || wait->holder_entry < ENTRIES);
		require(!wait->confirmed || wait->holder_state == HOLDER_KNOWN || wait->holder_state == HOLDER_ENDED);
	}
	for (size_t i = 0; i < trace->nr_deadlocks; i++) {
		check_deadlock(trace, &trace->deadlocks[i]);
		ret.deadlock |= trace->deadlocks[i].count == 2 && trace->threads[0].wait.holder_entry == 1;
	}
	check_output(trace);
	trace_destroy(trace);
	return ret;
}
