#include "report/thread_spans.h"

#include <stdlib.h>

bool thread_spans_collect(const struct profile *profile, struct thread_spans *ret)
{
	struct thread_spans by = {
	    .spans = calloc(profile->nr_spans + 1, sizeof(*by.spans)),
	    .first = calloc(profile->nr_threads + 2, sizeof(*by.first)),
	};

	if (!by.spans || !by.first) {
		thread_spans_clear(&by);
		return false;
	}
	/*
	 * Counting sort: first[t + 2] counts those of t, so that first[t + 1] becomes the place of the next one of t.
	 */
	for (size_t i = 0; i < profile->nr_spans; i++)
		by.first[profile->spans[i].thread + 2]++;
	for (size_t t = 0; t < profile->nr_threads; t++)
		by.first[t + 2] += by.first[t + 1];
	for (size_t i = 0; i < profile->nr_spans; i++)
		by.spans[by.first[profile->spans[i].thread + 1]++] = (uint32_t)i;
	*ret = by;
	return true;
}

void thread_spans_clear(struct thread_spans *spans)
{
	free(spans->spans);
	free(spans->first);
	*spans = (struct thread_spans){0};
}

void thread_spans_add_name(const struct profile_thread *thread, struct text *text)
{
	if (thread->name && *thread->name)
		text_format(text, "%s", thread->name);
	else if (thread->main)
		text_format(text, "main");
	else if (thread->tid != 0)
		text_format(text, "thread %d", (int)thread->tid);
	else
		text_format(text, "thread");
}

void thread_spans_add_title(const struct profile *profile, const struct profile_thread *thread, struct text *text)
{
	const struct profile_process *process = &profile->processes[thread->process];
	bool named = thread->main || (thread->name && *thread->name);

	text_format(text, "%s %d: ", process->command, (int)process->pid);
	thread_spans_add_name(thread, text);
	if (named && thread->tid != 0)
		text_format(text, " (%d)", (int)thread->tid);
}
