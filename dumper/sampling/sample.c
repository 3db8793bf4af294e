#include "sampling/sample.h"

void subject_open(struct subject *subject, pid_t pid, pid_t tid, uint64_t thread, uint64_t ec)
{
	*subject = (struct subject){.tid = tid, .extent = {.thread = thread, .ec = ec}};
	task_open(&subject->task, pid, tid);
}

void subject_close(struct subject *subject)
{
	task_close(&subject->task);
}

bool sample_init(struct sample *sample, const struct session *session)
{
	*sample = (struct sample){.copy = stack_copy_create(&session->ruby, session->target)};
	return sample->copy;
}

void sample_clear(struct sample *sample)
{
	stack_copy_destroy(sample->copy);
	*sample = (struct sample){0};
}

void sample_reject(struct sample *sample, enum reason reason)
{
	sample->copied = sample->no_stack = false;
	sample->cache.result = CACHE_MISS;
	sample->cache.entry = CACHE_NONE;
	sample->reason = reason;
}
