#include "trace/same.h"

#include <string.h>

#include "base/index_table.h"

bool trace_same_thread(const struct trace_thread *a, const struct trace_thread *b)
{
	return a->id == b->id && a->native == b->native && a->suspended == b->suspended &&
	       (!a->suspended || a->fiber == b->fiber) && (a->tid == b->tid || a->tid == 0 || b->tid == 0);
}

uint64_t trace_thread_key(const struct trace_thread *thread)
{
	if (thread->native)
		return (uint64_t)thread->tid;
	return thread->suspended ? thread->fiber : thread->id;
}

bool trace_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_frame(const struct trace_frame *a, const struct trace_frame *b)
{
	if (a->kind != b->kind || a->has_line != b->has_line || a->line != b->line || a->first_line != b->first_line)
		return false;
	if (a->kind == TRACE_UNREADABLE)
		return a->address == b->address && a->reason == b->reason;
	return trace_same_text(a->label, b->label) && trace_same_text(a->name, b->name) &&
	       trace_same_text(a->path, b->path) && trace_same_text(a->absolute_path, b->absolute_path) &&
	       trace_same_text(a->module, b->module) && trace_same_text(a->lost, b->lost) && a->inlined == b->inlined;
}

bool trace_same_stack(const struct trace_thread *a, const struct trace_thread *b)
{
	if (a->verdict != b->verdict || a->reason != b->reason || a->nr_frames != b->nr_frames ||
	    !trace_same_text(a->window, b->window))
		return false;
	for (size_t i = 0; i < a->nr_frames; i++)
		if (!same_frame(&a->frames[i], &b->frames[i]))
			return false;
	return true;
}

size_t trace_same_outer_frames(const struct trace_thread *a, const struct trace_thread *b, size_t most)
{
	size_t same = 0;

	while (same < most && same < a->nr_frames && same < b->nr_frames &&
	       same_frame(&a->frames[a->nr_frames - 1 - same], &b->frames[b->nr_frames - 1 - same]))
		same++;
	return same;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return hash_mix(hash, text ? hash_text(text) : 0);
}

uint64_t trace_stack_hash(const struct trace_thread *thread)
{
	uint64_t hash = hash_begin(thread->nr_frames);

	for (size_t i = 0; i < thread->nr_frames; i++) {
		const struct trace_frame *frame = &thread->frames[i];

		hash = hash_mix(hash, (uint64_t)frame->line);
		hash = hash_mix(hash, (uint64_t)frame->kind << 1 | frame->has_line);
		hash = mix_text(mix_text(hash, frame->label), frame->name);
		hash = mix_text(mix_text(hash, frame->path), frame->absolute_path);
	}
	return hash;
}
