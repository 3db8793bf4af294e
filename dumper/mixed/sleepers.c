#include "mixed/sleepers.h"

#include <errno.h>
#include <stdlib.h>

#include "target/sleeper.h"
#include "target/stopping.h"

/* Whether the stack of a sleeping thread cannot be followed without a stop, if there is enough memory to tell. */
static bool needs_stop(const struct native_walker *walker, const struct native_thread *thread)
{
	struct native_walk walk;
	struct native_stack stack;
	bool needs;

	native_stacks_forget(walker->stacks);
	native_stacks_want(walker->stacks, walker->target, thread->registers.of[UNWIND_RSP]);
	native_stacks_copy(walker->stacks, walker->target);
	stack = native_stacks_of(walker->stacks, 0);
	needs = native_walk(walker, &thread->registers, false, &stack, &walk) && walk.needs_registers;
	native_walk_clear(&walk);
	return needs;
}

bool sleepers_choose(const struct native_walker *walker)
{
	struct target *target = walker->target;
	bool enough = true;
	size_t count;
	pid_t *tids = live_list_threads(target->pid, &count);

	if (!tids)
		return errno != ENOMEM;
	for (size_t i = 0; i < count && enough; i++) {
		struct native_thread thread;

		if (addresses_have(&target->restless, (uint64_t)tids[i]) || !sleeper_find(target, tids[i], &thread))
			continue;
		sleeper_forget(&thread);
		if (needs_stop(walker, &thread))
			enough = addresses_add(&target->restless, (uint64_t)tids[i]);
		addresses_sort(&target->restless);
	}
	free(tids);
	return enough;
}
