#include "ruby/stack_pages.h"

#include <stdlib.h>

#include "check/validate.h"
#include "ruby/context.h"

/* The most frames of a stack that are copied, and the most bytes of all stacks. */
#define FRAMES_MAX 65536u
#define BYTES_MAX  (UINT64_C(64) << 20)

/* What an execution context says about its stack. False if it has none that can be copied. */
static bool read_facts(const struct ruby *ruby, uint64_t ec, struct stack_facts *ret)
{
	const struct context_members members = context_members(ruby->layout);
	struct access access = ruby_access(ruby);

	*ret = (struct stack_facts){
	    .vm_stack = access_member(&access, ec, members.vm_stack),
	    .words = access_member(&access, ec, members.vm_stack_size),
	    .cfp = access_member(&access, ec, members.cfp),
	    .frame_size = access_sizeof(&access, S_cfp),
	};
	return !access.failed && ret->vm_stack != 0 && validate_stack(ret) == REASON_NONE;
}

static uint64_t end_of(const struct stack_facts *facts)
{
	const uint64_t end = facts->vm_stack + facts->words * 8, most = facts->cfp + FRAMES_MAX * facts->frame_size;

	return end < most ? end : most;
}

/* Notes memory as wanted, unless that is too much. `left`: how many bytes may still be wanted. */
static void want(const struct ruby *ruby, uint64_t start, uint64_t end, uint64_t *left)
{
	if (end - start > *left)
		return;
	*left -= end - start;
	memory_want(ruby->memory, start, end);
}

/* Notes as wanted what lies below the highest environment of a stack whose frames were copied. */
static void want_values(const struct ruby *ruby, const struct stack_facts *facts, uint64_t *left)
{
	const uint64_t end = end_of(facts);
	struct access access = ruby_access(ruby);
	uint64_t highest = facts->vm_stack;

	for (uint64_t cfp = facts->cfp; cfp + facts->frame_size <= end && !access.failed; cfp += facts->frame_size) {
		const uint64_t ep = access_member(&access, cfp, F_cfp_ep);

		if (ep > highest && ep < facts->cfp)
			highest = ep;
	}
	want(ruby, facts->vm_stack, highest + 8, left);
}

/* Notes as wanted what a thread has on its native stack while it has given the GVL away (thread.c, blocking_region_begin()). */
static void want_blocking_region(const struct ruby *ruby, uint64_t thread)
{
	struct access access = ruby_access(ruby);
	uint64_t status;

	if (!layout_has(ruby->layout, F_thread_blocking_region) ||
	    !layout_has(ruby->layout, F_blocking_region_prev_status))
		return;
	status = access_address(&access, access_member(&access, thread, F_thread_blocking_region),
				F_blocking_region_prev_status);
	if (!access.failed && status > MEMORY_PAGE)
		memory_want(ruby->memory, status, status + ruby->layout->members[F_blocking_region_prev_status].size);
}

void stack_pages_fetch(const struct ruby *ruby, const struct ruby_threads *threads, const struct ruby_fibers *fibers)
{
	const size_t count = threads->count + (fibers ? fibers->count : 0);
	uint64_t *contexts = calloc(count + 1, sizeof(*contexts)), left = BYTES_MAX;
	struct stack_facts facts;

	if (!contexts)
		return;
	for (size_t i = 0; i < count; i++)
		contexts[i] = i < threads->count ? threads->threads[i].ec : fibers->fibers[i - threads->count].ec;
	for (size_t i = 0; i < count; i++)
		if (read_facts(ruby, contexts[i], &facts))
			want(ruby, facts.cfp, end_of(&facts), &left);
	for (size_t i = 0; i < threads->count; i++)
		want_blocking_region(ruby, threads->threads[i].address);
	memory_fetch(ruby->memory);
	for (size_t i = 0; i < count; i++)
		if (read_facts(ruby, contexts[i], &facts))
			want_values(ruby, &facts, &left);
	memory_fetch(ruby->memory);
	free(contexts);
}
