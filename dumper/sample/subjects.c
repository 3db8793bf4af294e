#include "sample/subjects.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_task(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	return access(path, F_OK) == 0;
}

pid_t subject_tid(const struct session *session, const struct ruby_thread *thread)
{
	const struct target *target = session->target;

	if (!session->foreign_pids && thread->tid > 0 && thread->tid < INT32_MAX &&
	    is_task(target->pid, (pid_t)thread->tid))
		return (pid_t)thread->tid;
	/* As the native threads were when the session began: a new one may have the address of one that has ended. */
	for (size_t i = 0; thread->pthread != 0 && i < target->nr_threads; i++)
		if (target->threads[i].fs_base == thread->pthread && is_task(target->pid, target->threads[i].tid))
			return target->threads[i].tid;
	return thread->main ? target->pid : 0;
}

/* The aim of the last time is better than none, unless the thread is in another fiber by now. */
static void keep_aim(const struct subjects *before, struct subject *subject)
{
	for (size_t i = 0; i < before->count; i++)
		if (before->subjects[i].tid == subject->tid && before->subjects[i].aim.thread == subject->aim.thread &&
		    before->subjects[i].aim.ec == subject->aim.ec)
			subject->aim = before->subjects[i].aim;
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
		keep_aim(before, subject);
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
