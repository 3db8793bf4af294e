/*
 * Groups the spans of a profile by thread. Also makes the names of threads for reports, with or without the name of the
 * thread's process.
 */
#ifndef RBDUMP_THREAD_SPANS_H
#define RBDUMP_THREAD_SPANS_H

#include "base/text.h"
#include "recording/profile.h"

struct thread_spans {
	/* The indexes of all spans, sorted by thread. The spans of one thread have the same order as in the profile. */
	uint32_t *spans;
	/*
	 * For each thread: where the thread's spans begin in `spans`. After the last thread: the number of all spans.
	 */
	size_t *first;
};

/* Collects the spans. If there is not enough memory, returns false; in this case, `ret` need not be cleared. */
bool thread_spans_collect(const struct profile *profile, struct thread_spans *ret);
void thread_spans_clear(struct thread_spans *spans);

/* The name that is shown for a span whose stack is not known. */
#define THREAD_SPANS_NO_STACK "(no stack)"

/*
 * Appends the name of a thread, such as "worker". If the thread has no name, appends "main" for the main thread, and
 * "thread 1235" for any other thread. If the tid of such a thread is not known, appends only "thread".
 */
void thread_spans_add_name(const struct profile_thread *thread, struct text *text);
/* Appends the names of a process and a thread, for example "ruby 1234: worker (1235)". */
void thread_spans_add_title(const struct profile *profile, const struct profile_thread *thread, struct text *text);

#endif
