#include "sampling/subjects.h"

pid_t subject_tid(const struct session *session, const struct ruby_thread *thread)
{
	return native_ids_find(session->natives, thread->pthread, thread->tid);
}

/* Keeps the previous extent of a thread, unless the thread is in another fiber by now. */
static void keep_extent(const struct subjects *before, struct subject *subject)
{
	for (size_t i = 0; i < before->count; i++)
		if (before->subjects[i].tid == subject->tid &&
		    before->subjects[i].extent.thread == subject->extent.thread &&
		    before->subjects[i].extent.ec == subject->extent.ec)
			subject->extent = before->subjects[i].extent;
}

static bool may_move(const struct ruby_thread *thread)
{
	return thread->state == STATE_RUNNING || thread->state == STATE_WAITING_GVL || thread->state == STATE_UNKNOWN;
}

static bool is_main(const struct ruby_thread *thread)
{
	return thread->main;
}

static void open_those(struct subjects *subjects, const struct session *session, const struct ruby_threads *threads,
		       bool (*wanted)(const struct ruby_thread *), const struct subjects *before)
{
	for (size_t i = 0; i < threads->count && subjects->count < SUBJECTS_MAX; i++) {
		const struct ruby_thread *thread = &threads->threads[i];
		struct subject *subject = &subjects->subjects[subjects->count];
		pid_t tid = subject_tid(session, thread);

		if (tid == 0 || !wanted(thread))
			continue;
		subject_open(subject, session->target->pid, tid, thread->address, thread->ec);
		subject->pthread = thread->pthread;
		keep_extent(before, subject);
		subjects->count++;
	}
}

void subjects_choose(struct subjects *subjects, const struct session *session, const struct ruby *ruby)
{
	struct ruby_threads threads;
	struct subjects before = *subjects;

	if (!threads_list(ruby, &threads))
		return;
	if (threads.missing != LIST_BROKEN && threads.count > 0) {
		subjects->count = 0;
		open_those(subjects, session, &threads, may_move, &before);
		if (subjects->count == 0)
			open_those(subjects, session, &threads, is_main, &before);
		subjects_clear(&before);
	}
	threads_clear(&threads);
}

void subjects_clear(struct subjects *subjects)
{
	for (size_t i = 0; i < subjects->count; i++)
		subject_close(&subjects->subjects[i]);
	subjects->count = 0;
}
