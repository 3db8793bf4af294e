#include "mixed/sleepers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "target/sleeper.h"
#include "target/stopping.h"

void sleepers_clear(struct sleepers *sleepers)
{
	free(sleepers->of);
	*sleepers = (struct sleepers){0};
}

size_t sleepers_find(const struct sleepers *sleepers, const struct native_thread *thread)
{
	const size_t at = array_first(sleepers->of, sleepers->count, sleeper, sleeper->tid >= thread->tid);

	if (!thread->asleep || at == sleepers->count || sleepers->of[at].tid != thread->tid ||
	    sleepers->of[at].switches != thread->switches)
		return SIZE_MAX;
	return at;
}

/* Whether the stack of a sleeping thread cannot be followed without a stop, if there is enough memory to tell. */
static bool needs_stop(const struct native_walker *walker, const struct native_thread *thread, size_t index)
{
	struct native_walk walk;
	struct native_stack stack;
	bool needs;

	native_stacks_want(walker->stacks, walker->target, thread->registers.of[UNWIND_RSP]);
	native_stacks_copy(walker->stacks, walker->target);
	stack = native_stacks_of(walker->stacks, index);
	needs = native_walk(walker, &thread->registers, false, &stack, &walk) && walk.needs_registers;
	native_walk_clear(&walk);
	return needs;
}

/* Copies the stack of a thread. Returns false if there is not enough memory. */
static bool copy(const struct native_walker *walker, const struct native_thread *thread, struct sleepers *ret)
{
	struct addresses *restless = &walker->target->restless;

	if (!array_make_room(ret->of, ret->capacity, ret->count + 1))
		return false;
	ret->of[ret->count] = (struct sleeper){.tid = thread->tid, .switches = thread->switches};
	if (needs_stop(walker, thread, ret->count++) && !addresses_add(restless, (uint64_t)thread->tid))
		return false;
	addresses_sort(restless);
	return true;
}

bool sleepers_copy(const struct native_walker *walker, struct sleepers *ret)
{
	struct target *target = walker->target;
	bool enough;
	size_t count;
	pid_t *tids = live_list_threads(target->pid, &count);

	ret->count = 0;
	if (!tids)
		return errno != ENOMEM;
	enough = native_stacks_prepare(walker->stacks, count);
	for (size_t i = 0; i < count && enough && !native_stacks_are_crowded(walker->stacks); i++) {
		struct native_thread thread;

		if (addresses_have(&target->restless, (uint64_t)tids[i]) || !sleeper_find(target, tids[i], &thread))
			continue;
		sleeper_forget(&thread);
		enough = copy(walker, &thread, ret);
	}
	free(tids);
	return enough;
}
