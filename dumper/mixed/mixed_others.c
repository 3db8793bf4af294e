/* Adds the native threads that Ruby does not know: see mixed.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/addresses.h"
#include "base/text.h"
#include "mixed/mixed.h"
#include "mixed/mixed_parts.h"

/* The kernel's name of a thread, owned by the trace. NULL if it is not known. */
static const char *name_of(const struct target *target, pid_t tid, struct trace *trace)
{
	char path[64], name[64] = "";
	struct text text = {0};
	const char *kept = NULL;
	size_t length = 0;
	FILE *file;

	if (!target->operations->runs)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", target->pid, tid);
	file = fopen(path, "re");
	if (file) {
		length = fread(name, 1, sizeof(name) - 1, file);
		fclose(file);
	}
	if (length > 0 && name[length - 1] == '\n')
		length--;
	text_add(&text, name, length);
	if (length > 0 && !text.failed)
		kept = trace_string(trace, text.data);
	text_clear(&text);
	return kept;
}

/* Makes the frames of a thread that has none of Ruby. Returns false if there is not enough memory. */
static bool take_frames(struct mixed *mixed, const struct native_walk *walk, struct trace *trace,
			struct trace_thread *thread)
{
	struct frame_list list = {0};
	bool enough = true;

	for (size_t i = 0; i < walk->count && enough; i++)
		enough = native_names_add(&mixed->names, &walk->of[i], mixed->options.inlines, trace, &list);
	if (enough && walk->lost)
		enough = native_names_add_lost(walk->lost, &list);
	thread->frames = list.of;
	thread->nr_frames = list.count;
	return enough;
}

/* Adds one native thread. Returns false if there is not enough memory. */
static bool add_other(struct mixed *mixed, size_t index, struct trace *trace)
{
	const struct native_thread *native = &mixed->walker.target->threads[index];
	struct trace_thread *threads = reallocarray(trace->threads, trace->nr_threads + 1, sizeof(*threads));
	struct native_walk walk;
	bool enough;

	if (!threads)
		return false;
	trace->threads = threads;
	threads[trace->nr_threads++] = (struct trace_thread){
	    .tid = native->tid,
	    .native = true,
	    .name = name_of(mixed->walker.target, native->tid, trace),
	    .switches = native->asleep ? native->switches : 0,
	    .wait = {.holder_entry = WAIT_NO_ENTRY},
	};
	enough =
	    mixed_walk_thread(mixed, index, &walk) && take_frames(mixed, &walk, trace, &threads[trace->nr_threads - 1]);
	native_walk_clear(&walk);
	return enough;
}

static struct error *add_others(struct mixed *mixed, struct trace *trace)
{
	const struct target *target = mixed->walker.target;
	struct addresses known = {0};
	bool enough = true;

	for (size_t i = 0; i < trace->nr_threads && enough; i++)
		enough = addresses_add(&known, (uint64_t)trace->threads[i].tid);
	addresses_sort(&known);
	for (size_t i = 0; i < target->nr_threads && enough; i++)
		if (!addresses_have(&known, (uint64_t)target->threads[i].tid))
			enough = add_other(mixed, i, trace);
	addresses_clear(&known);
	return enough ? NULL : error_no_memory();
}

struct error *mixed_add_others(struct mixed *mixed, struct trace *trace)
{
	struct error *error = mixed->options.which == MIXED_ALL ? add_others(mixed, trace) : NULL;

	trace->native_names_missing = trace_string(trace, symbolizer_lacks(mixed->names.symbolizer));
	return error;
}
