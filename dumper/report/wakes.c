#include "report/wakes.h"

#include <stdlib.h>

#include "report/thread_spans.h"

static bool is_wait(const struct profile_span *span)
{
	return span->state != SAMPLE_CPU && span->state != SAMPLE_GC && span->state != SAMPLE_RUNNABLE &&
	       span->state != SAMPLE_STARTING;
}

/* Adds the waits of one thread. A wait can be in several spans, of which the last one has the waker. */
static void add_waits(const struct profile *profile, const uint32_t *spans, size_t count, struct wakes *ret)
{
	uint64_t waited_ns = 0, end_ns = 0;

	for (size_t i = 0; i < count; i++) {
		const struct profile_span *span = &profile->spans[spans[i]];

		if (!is_wait(span) || span->start_ns != end_ns)
			waited_ns = 0;
		if (is_wait(span))
			waited_ns += span->weight_ns;
		end_ns = span->start_ns + span->weight_ns;
		if (span->waker == 0)
			continue;
		ret->of[ret->count++] =
		    (struct wake){.thread = span->thread, .waker = span->waker - 1, .count = 1, .waited_ns = waited_ns};
		waited_ns = 0;
	}
}

static int by_pair(const void *a, const void *b)
{
	const struct wake *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->waker < y->waker ? -1 : x->waker > y->waker;
}

static int by_time(const void *a, const void *b)
{
	const struct wake *x = a, *y = b;

	if (x->waited_ns != y->waited_ns)
		return x->waited_ns > y->waited_ns ? -1 : 1;
	return by_pair(a, b);
}

static void merge(struct wakes *wakes)
{
	size_t kept = 0;

	qsort(wakes->of, wakes->count, sizeof(*wakes->of), by_pair);
	for (size_t i = 0; i < wakes->count; i++) {
		if (kept > 0 && by_pair(&wakes->of[kept - 1], &wakes->of[i]) == 0) {
			wakes->of[kept - 1].count++;
			wakes->of[kept - 1].waited_ns += wakes->of[i].waited_ns;
		} else {
			wakes->of[kept++] = wakes->of[i];
		}
	}
	wakes->count = kept;
	qsort(wakes->of, wakes->count, sizeof(*wakes->of), by_time);
}

bool wakes_collect(const struct profile *profile, struct wakes *ret)
{
	struct thread_spans spans;
	size_t count = 0;

	for (size_t i = 0; i < profile->nr_spans; i++)
		count += profile->spans[i].waker != 0;
	*ret = (struct wakes){.of = calloc(count + 1, sizeof(*ret->of))};
	if (!ret->of)
		return false;
	if (!thread_spans_collect(profile, &spans)) {
		wakes_clear(ret);
		return false;
	}
	for (size_t i = 0; i < profile->nr_threads && count > 0; i++)
		add_waits(profile, spans.spans + spans.first[i], spans.first[i + 1] - spans.first[i], ret);
	thread_spans_clear(&spans);
	merge(ret);
	return true;
}

void wakes_clear(struct wakes *wakes)
{
	free(wakes->of);
	*wakes = (struct wakes){0};
}

uint32_t wakes_thread_of(const struct profile *profile, const struct profile_waker *waker)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < profile->nr_threads; i++) {
		if (profile->threads[i].tid != waker->tid ||
		    profile->processes[profile->threads[i].process].pid != waker->pid)
			continue;
		if (found != UINT32_MAX)
			return UINT32_MAX;
		found = i;
	}
	return found;
}
