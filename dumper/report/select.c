#include "report/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/system_calls.h"

static const char *const view_names[PROFILE_VIEWS] = {
    [VIEW_WALL] = "wall", [VIEW_CPU] = "cpu", [VIEW_GVL] = "gvl", [VIEW_GC] = "gc"};

const char *profile_view_name(enum profile_view view)
{
	return view_names[view];
}

bool profile_view_parse(const char *name, enum profile_view *ret)
{
	for (int view = 0; view < PROFILE_VIEWS; view++) {
		if (strcmp(name, view_names[view]) == 0) {
			*ret = (enum profile_view)view;
			return true;
		}
	}
	return false;
}

/* C methods that wait for work: TCPServer#accept polls since 3.0. */
static bool waits_for_work(const char *name)
{
	static const char *const methods[] = {"IO.select", "Kernel#select", "Kernel.select", "NIO::Selector#select"};
	static const char accept[] = "#accept";
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(name, methods[i]) == 0)
			return true;
	return length > sizeof(accept) - 1 && strcmp(name + length - (sizeof(accept) - 1), accept) == 0;
}

static bool is_in_wait_for_work(const struct profile *profile, const struct profile_span *span)
{
	/* Native frames, and the mark of those that are missing, are inside of the method. */
	for (uint32_t node = span->node; node != 0; node = profile->nodes[node].parent) {
		const struct profile_function *function =
		    &profile->functions[profile->frames[profile->nodes[node].frame].function];

		if (function->kind == PROFILE_CFUNC)
			return waits_for_work(function->name);
		if (function->kind == PROFILE_RUBY)
			return false;
	}
	return false;
}

bool span_is_idle(const struct profile *profile, const struct profile_span *span)
{
	static const int calls[] = {SYS_accept,	      SYS_accept4, SYS_epoll_wait, SYS_epoll_pwait,
				    SYS_epoll_pwait2, SYS_select,  SYS_pselect6,   SYS_wait4,
				    SYS_waitid,	      SYS_pause,   SYS_nanosleep,  SYS_clock_nanosleep};

	if (span->state == SAMPLE_SLEEPING)
		return true;
	for (size_t i = 0; span->state == SAMPLE_BLOCKED && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (span->syscall == calls[i])
			return true;
	return span->state == SAMPLE_BLOCKED && is_in_wait_for_work(profile, span);
}

bool selects_states(const struct selection *selection)
{
	for (int state = 0; state < SAMPLE_STATES; state++)
		if (selection->states[state])
			return true;
	return false;
}

static bool wants_state(const struct selection *selection, const struct profile *profile,
			const struct profile_span *span)
{
	if (selects_states(selection))
		return selection->states[span->state];
	switch (selection->view) {
	case VIEW_CPU:
		return span->state == SAMPLE_CPU || span->state == SAMPLE_GC;
	case VIEW_GVL:
		return span->state == SAMPLE_GVL;
	case VIEW_GC:
		return span->state == SAMPLE_GC;
	default:
		return selection->idle || !span_is_idle(profile, span);
	}
}

static bool wants_thread(const struct selection *selection, const struct profile *profile, uint32_t index)
{
	const struct profile_thread *thread = &profile->threads[index];
	char *end;
	long tid;

	if (selection->pid != 0 && profile->processes[thread->process].pid != selection->pid)
		return false;
	if (!selection->thread || (thread->name && strcmp(thread->name, selection->thread) == 0))
		return true;
	if (thread->main && strcmp(selection->thread, "main") == 0)
		return true;
	tid = strtol(selection->thread, &end, 10);
	return end != selection->thread && *end == '\0' && tid == thread->tid && tid != 0;
}

/* Cuts a span to the wanted time, and its samples in proportion. Returns false if nothing is left. */
static bool cut(const struct selection *selection, struct profile_span *span)
{
	uint64_t start = span->start_ns, end = span->start_ns + span->weight_ns, whole = span->weight_ns;

	if (start < selection->from_ns)
		start = selection->from_ns;
	if (selection->to_ns > 0 && end > selection->to_ns)
		end = selection->to_ns;
	if (start >= end)
		return false;
	/* The wait did not end here. */
	if (end < span->start_ns + whole)
		span->waker = 0;
	if (end - start < whole) {
		span->count = (uint32_t)((double)span->count * (double)(end - start) / (double)whole + 0.5);
		span->count += span->count == 0;
	}
	span->start_ns = start;
	span->weight_ns = end - start;
	return true;
}

void profile_select(struct profile *profile, const struct selection *selection)
{
	size_t kept = 0;

	for (size_t i = 0; i < profile->nr_spans; i++) {
		struct profile_span span = profile->spans[i];

		if (wants_state(selection, profile, &span) && wants_thread(selection, profile, span.thread) &&
		    cut(selection, &span))
			profile->spans[kept++] = span;
	}
	profile->nr_spans = kept;
}
