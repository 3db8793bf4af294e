#include "trace/same.h"

#include <string.h>

#include "base/index_table.h"
#include "target/call.h"
#include "trace/wait_graph.h"

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

static bool same_holder(const struct trace *a, const struct trace_wait *x, const struct trace *b,
			const struct trace_wait *y)
{
	const struct trace_thread *holder, *other;
	const struct trace_frame *since, *since_other;

	if (x->holder_state != HOLDER_KNOWN || y->holder_state != HOLDER_KNOWN)
		return x->holder_state == y->holder_state;
	holder = &a->threads[x->holder_entry];
	other = &b->threads[y->holder_entry];
	if (!trace_same_thread(holder, other) || holder->fiber != other->fiber)
		return false;
	since = wait_is_for_lock(x) ? wait_locked_in(holder, x->object) : NULL;
	since_other = wait_is_for_lock(y) ? wait_locked_in(other, y->object) : NULL;
	return since && since_other ? same_frame(since, since_other) : since == since_other;
}

static bool same_hold(const struct trace_hold *x, const struct trace_hold *y)
{
	return x->lock == y->lock && x->object == y->object && trace_same_text(x->class_name, y->class_name) &&
	       x->has_frame == y->has_frame && (!x->has_frame || x->frame == y->frame) &&
	       (x->waiters > 0) == (y->waiters > 0);
}

bool trace_same_waits(const struct trace *a, size_t i, const struct trace *b, size_t k)
{
	const struct trace_thread *one = &a->threads[i], *other = &b->threads[k];
	const struct trace_wait *x = &one->wait, *y = &other->wait;

	if (x->kind != y->kind || !trace_same_text(x->method, y->method) || x->object != y->object ||
	    !trace_same_text(x->class_name, y->class_name) || x->limited != y->limited ||
	    x->limit_unknown != y->limit_unknown || x->has_seconds != y->has_seconds ||
	    (x->has_seconds && x->seconds < y->seconds) || (x->has_seconds && x->seconds > y->seconds) ||
	    x->max != y->max || x->child != y->child || !same_holder(a, x, b, y) || one->nr_holds != other->nr_holds)
		return false;
	for (size_t j = 0; j < one->nr_holds; j++)
		if (!same_hold(&one->holds[j], &other->holds[j]))
			return false;
	return true;
}

bool trace_same_call(const struct trace_thread *a, const struct trace_thread *b)
{
	const struct call *x = a->call, *y = b->call;

	if (!x || !y || x->missing != CALL_KNOWN || y->missing != CALL_KNOWN)
		return !x && !y;
	if (!system_call_same(&x->at, &y->at) || x->nr_fds != y->nr_fds || x->nr_more != y->nr_more)
		return false;
	for (size_t i = 0; i < x->nr_fds; i++)
		if (x->fds[i].fd != y->fds[i].fd || !trace_same_text(x->fds[i].events, y->fds[i].events))
			return false;
	return true;
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
