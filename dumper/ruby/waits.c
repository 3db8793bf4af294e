#include "ruby/waits.h"

#include <string.h>

#include "ruby/method_name.h"
#include "ruby/value.h"

/* scheduler.c, v3_0_0 to v4.0.5 and head: the hooks that return when the awaited event has happened. */
static bool is_hook(const char *name)
{
	static const char *const hooks[] = {
	    "address_resolve", "block",	       "blocking_operation_wait",
	    "io_close",	       "io_pread",     "io_pwrite",
	    "io_read",	       "io_select",    "io_wait",
	    "io_write",	       "kernel_sleep", "process_wait",
	    "timeout_after",
	};

	for (size_t i = 0; name && i < sizeof(hooks) / sizeof(hooks[0]); i++)
		if (strcmp(name, hooks[i]) == 0)
			return true;
	return false;
}

/* Whether the frame `index` is that of a hook of the scheduler. Sets access->failed if it cannot be read. */
static bool is_hook_of(struct access *access, const struct trace_thread *fiber, size_t index, uint64_t scheduler)
{
	const struct trace_frame *frame = &fiber->frames[index];

	return index < fiber->nr_frames && frame->kind != TRACE_UNREADABLE && is_hook(method_name_of(frame->name)) &&
	       access_member(access, frame->address, F_cfp_self) == scheduler && !access->failed;
}

void waits_find(const struct ruby *ruby, uint64_t thread, struct trace_thread *fiber)
{
	const struct layout *layout = ruby->layout;
	struct access access = ruby_access(ruby);
	uint64_t scheduler;

	if (!layout_has(layout, F_thread_scheduler) || !layout_has(layout, F_cfp_self))
		return;
	scheduler = access_member(&access, thread, F_thread_scheduler);
	if (access.failed || !value_is_object(scheduler))
		return;
	for (size_t i = 0; i < fiber->nr_frames; i++) {
		if (!is_hook_of(&access, fiber, i, scheduler))
			continue;
		/* A hook may call another one: kernel_sleep() may call block(). Ruby has called the outermost. */
		while (is_hook_of(&access, fiber, i + 1, scheduler))
			i++;
		fiber->waits_in = fiber->frames[i].name;
		if (i + 1 < fiber->nr_frames && fiber->frames[i + 1].kind != TRACE_UNREADABLE)
			fiber->waits_for = fiber->frames[i + 1].name;
		return;
	}
}
