#include "sampling/quiet.h"

bool quiet_holds(const struct quiet *quiet, const struct watched_list *list, struct sleep_guard *guard)
{
	if (quiet->any_guarded && sleep_guard_was_woken(guard))
		return false;
	for (size_t i = 0; i < quiet->nr_few; i++) {
		const struct watched *watched = &list->of[quiet->few[i]];

		if (!task_sleeps_on(&watched->subject.task, &watched->look))
			return false;
	}
	return true;
}

void quiet_prepare(struct quiet *quiet, const struct ruby *ruby, const struct ruby_threads *threads,
		   const struct watched_list *list, uint64_t now_ns)
{
	size_t nr_running = 0;

	quiet->may_be = false;
	quiet->running_at = SIZE_MAX;
	quiet->nr_few = 0;
	quiet->any_guarded = false;
	if (threads->missing != LIST_COMPLETE)
		return;
	for (size_t i = 0; i < threads->count; i++) {
		const struct ruby_thread *thread = &threads->threads[i];

		if (thread->state == STATE_WAITING_GVL || thread->state == STATE_UNKNOWN ||
		    thread->state == STATE_DEAD || thread->ec == 0)
			return;
		if (thread->state == STATE_RUNNING && nr_running++ == 0)
			quiet->running = *thread;
	}
	for (size_t i = 0; i < list->count; i++) {
		const struct watched *watched = &list->of[i];

		if (watched->subject.tid == 0)
			return;
		if (nr_running == 1 && watched->subject.extent.thread == quiet->running.address)
			quiet->running_at = i;
		else if (watched->guarded)
			quiet->any_guarded = true;
		else if (watched->asleep == 0 || quiet->nr_few == SLEEP_GUARD_FEW)
			return;
		else
			quiet->few[quiet->nr_few++] = i;
	}
	if (nr_running > 1 ||
	    (nr_running == 1 && (quiet->running_at == SIZE_MAX || !thread_words_of(ruby, threads, &quiet->words))))
		return;
	quiet->since_ns = now_ns;
	quiet->may_be = true;
}
