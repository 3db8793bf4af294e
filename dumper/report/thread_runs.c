#include "report/thread_runs.h"

#include <stdlib.h>

bool thread_runs_collect(const struct profile *profile, struct thread_runs *ret)
{
	struct thread_runs by = {
	    .runs = calloc(profile->nr_runs + 1, sizeof(*by.runs)),
	    .first = calloc(profile->nr_threads + 2, sizeof(*by.first)),
	};

	if (!by.runs || !by.first) {
		thread_runs_clear(&by);
		return false;
	}
	/* Counting sort: first[t + 2] counts those of t, so that first[t + 1] becomes where the next of t goes. */
	for (size_t i = 0; i < profile->nr_runs; i++)
		by.first[profile->runs[i].thread + 2]++;
	for (size_t t = 0; t < profile->nr_threads; t++)
		by.first[t + 2] += by.first[t + 1];
	for (size_t i = 0; i < profile->nr_runs; i++)
		by.runs[by.first[profile->runs[i].thread + 1]++] = (uint32_t)i;
	*ret = by;
	return true;
}

void thread_runs_clear(struct thread_runs *runs)
{
	free(runs->runs);
	free(runs->first);
	*runs = (struct thread_runs){0};
}

void thread_runs_add_name(const struct profile_thread *thread, struct text *text)
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

void thread_runs_add_title(const struct profile *profile, const struct profile_thread *thread, struct text *text)
{
	const struct profile_process *process = &profile->processes[thread->process];
	bool named = thread->main || (thread->name && *thread->name);

	text_format(text, "%s %d: ", process->command, (int)process->pid);
	thread_runs_add_name(thread, text);
	if (named && thread->tid != 0)
		text_format(text, " (%d)", (int)thread->tid);
}
