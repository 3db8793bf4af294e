#include "trace/progress.h"

#include <stdlib.h>

#include "base/addresses.h"
#include "base/array.h"
#include "trace/same.h"

/* Maps the keys of all threads to their indexes. Returns false if there is not enough memory. */
static bool map_threads(const struct trace *trace, struct address_map *map)
{
	for (size_t i = 0; i < trace->nr_threads; i++)
		if (!address_map_add(map, trace_thread_key(&trace->threads[i]), i))
			return false;
	address_map_sort(map);
	return true;
}

/* The thread of the other trace whose struct is at the same address; NULL if there is none. */
static const struct trace_thread *at_address(const struct trace *trace, const struct address_map *map,
					     const struct trace_thread *thread)
{
	const uint64_t *index = address_map_find(map, trace_thread_key(thread));

	return index ? &trace->threads[*index] : NULL;
}

/* The same thread in the other trace; NULL if it is not there. */
static const struct trace_thread *find(const struct trace *trace, const struct address_map *map,
				       const struct trace_thread *thread)
{
	const struct trace_thread *other = at_address(trace, map, thread);

	return other && trace_same_thread(other, thread) ? other : NULL;
}

/*
 * Whether a thread that is not in the other trace may be there with another tid: Ruby's struct is at the same address, and the
 * native thread of the later look was there at the earlier one. It is the same thread if it has gone on in another native
 * thread (M:N threads, since 3.3), or another thread that has got the memory and a kept native thread of threads that have
 * ended (up to 3.2).
 *   other  the thread of the other trace at the same address; NULL if there is none
 *   fresh  the native thread of the later look was not there at the earlier one
 */
static bool may_be(const struct trace_thread *other, const struct trace_thread *thread, bool fresh)
{
	return other && !fresh && other->suspended == thread->suspended;
}

/* A thread that runs Ruby code, or is about to, is never one that has not moved, whatever the kernel says. */
static bool is_active(const struct trace_thread *thread)
{
	return thread->state == STATE_RUNNING || thread->state == STATE_WAITING_GVL;
}

static enum trace_moved moved(const struct trace_thread *before, const struct trace_thread *now)
{
	if (before->verdict != VERDICT_COMPLETE || now->verdict != VERDICT_COMPLETE)
		return MOVED_NOT_KNOWN;
	if (!trace_same_stack(before, now))
		return MOVED_YES;
	return now->progress.slept && !is_active(before) && !is_active(now) ? MOVED_NOT : MOVED_SAME_STACK;
}

static void judge(const struct trace *before, const struct address_map *map, struct trace_thread *thread)
{
	const struct trace_thread *same = find(before, map, thread);
	struct trace_progress *progress = &thread->progress;

	/* The native thread has done something else before. */
	if (same ? same->tid != thread->tid : !progress->fresh) {
		progress->has_cpu = progress->slept = false;
		progress->cpu_ns = 0;
	}
	if (same)
		progress->moved = moved(same, thread);
	else if (thread->native && !progress->fresh)
		/* It was there before, as a thread of Ruby. */
		progress->moved = MOVED_NOT_KNOWN;
	else
		progress->moved =
		    may_be(at_address(before, map, thread), thread, progress->fresh) ? MOVED_NOT_KNOWN : MOVED_NEW;
}

static bool add_gone(struct trace *trace, size_t *capacity, const struct trace_thread *thread)
{
	struct trace_look *look = &trace->look;

	if (!array_make_room(look->gone, *capacity, look->nr_gone + 1))
		return false;
	look->gone[look->nr_gone++] =
	    (struct trace_gone){.id = thread->id, .tid = thread->tid, .name = trace_string(trace, thread->name)};
	return true;
}

/* Lists the threads of `before` that are not in `now`. */
static bool list_gone(const struct trace *before, struct trace *now, const struct address_map *map)
{
	size_t capacity = 0;

	if (now->threads_missing != LIST_COMPLETE)
		return true;
	for (size_t i = 0; i < before->nr_threads; i++) {
		const struct trace_thread *thread = &before->threads[i];
		const struct trace_thread *other = at_address(now, map, thread);
		const bool fresh = other && other->progress.fresh;

		/* A native thread that Ruby did not know can be one of Ruby's now. */
		if (!thread->suspended && !thread->native && !find(now, map, thread) && !may_be(other, thread, fresh) &&
		    !add_gone(now, &capacity, thread))
			return false;
	}
	return true;
}

bool trace_compare(const struct trace *before, struct trace *now)
{
	struct address_map map_before = {0}, map_now = {0};
	bool enough = map_threads(before, &map_before) && map_threads(now, &map_now);

	for (size_t i = 0; enough && i < now->nr_threads; i++)
		judge(before, &map_before, &now->threads[i]);
	now->look.before = before->look.number;
	enough = enough && list_gone(before, now, &map_now);
	address_map_clear(&map_before);
	address_map_clear(&map_now);
	return enough;
}
