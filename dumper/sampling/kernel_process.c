#include "sampling/kernel_process.h"

#include "ruby/threads.h"
#include "sampling/stack_copy_record.h"
#include "sampling/stack_objects.h"
#include "sampling/thread_state.h"

/* The words of a thread that a record has, in this order. */
enum { WORD_STATUS, WORD_BLOCKING, WORD_LINK };

/*
 * The kernel's include/linux/sched.h, v5.15 to v6.18: TASK_UNINTERRUPTIBLE, __TASK_STOPPED, __TASK_TRACED,
 * TASK_DEAD, TASK_FROZEN.
 */
#define TASK_UNINTERRUPTIBLE 0x2u
#define TASK_DEAD	     0x80u
#define TASK_STOPPED_MASK    (0x4u | 0x8u | 0x8000u)

/*
 * Since v6.1: a sleep that the freezer need not end. Outside of a system call, that is the sleep of a thread whose control
 * group is frozen (kernel/signal.c, do_freezer_trap()).
 */
#define TASK_FREEZABLE 0x2000u

static uint32_t offset_of(const struct layout *layout, enum layout_member_id id)
{
	return layout_has(layout, id) ? layout->members[id].offset : 0;
}

static struct error *cannot(const char *why)
{
	return error_create(EXIT_FAILED, "this process cannot be sampled in the kernel: %s; use another mode", why);
}

/* How the program tells whether a thread has ended. */
static void find_status(const struct layout *layout, struct kernel_facts *facts)
{
	const struct layout_member *status = &layout->members[F_thread_status];
	const unsigned int width = status->width != 0 ? status->width : 8 * status->size;

	facts->status_shift = status->width != 0 ? status->shift : 0;
	facts->status_mask = width < 32 ? (1u << width) - 1 : UINT32_MAX;
	facts->status_ended = (uint32_t)layout->enumerators[E_THREAD_KILLED].value;
}

struct error *kernel_process_facts(const struct ruby *ruby, const struct stack_copy *copy, struct kernel_facts *ret)
{
	const struct layout *layout = ruby->layout;

	*ret = (struct kernel_facts){0};
	if (!collections_read(ruby).told)
		return cannot("rbdump cannot know when the process collects garbage, so methods might get wrong names");
	if (stack_objects_are_native(copy))
		return cannot("this Ruby may use ZJIT, which keeps parts of frames on the native stack");
	if (!stack_copy_kernel_facts(copy, ret))
		return cannot("some structs of its Ruby are too large to be copied in the kernel");
	if (layout_has(layout, F_thread_thread_id)) {
		ret->where_pthread = KERNEL_IN_THREAD;
		ret->pthread = offset_of(layout, F_thread_thread_id);
	} else if (layout_has(layout, F_thread_nt) && layout_has(layout, F_nt_thread_id)) {
		ret->where_pthread = KERNEL_IN_NATIVE;
		ret->native = offset_of(layout, F_thread_nt);
		ret->pthread = offset_of(layout, F_nt_thread_id);
	}
	find_status(layout, ret);
	ret->thread_words[WORD_STATUS] = offset_of(layout, F_thread_status);
	ret->thread_words[WORD_BLOCKING] = offset_of(layout, F_thread_blocking_region);
	ret->thread_words[WORD_LINK] = offset_of(layout, F_thread_gvl_node) + offset_of(layout, F_list_node_next);
	return NULL;
}

/* A member of at most 8 bytes, which is at the beginning of a word. */
static uint64_t member_of(const struct layout *layout, enum layout_member_id id, uint64_t word)
{
	const struct layout_member *member = &layout->members[id];
	uint64_t value = member->size < 8 ? word & ((UINT64_C(1) << (8 * member->size)) - 1) : word;

	if (member->width == 0)
		return value;
	return value >> member->shift & ((UINT64_C(1) << member->width) - 1);
}

bool kernel_process_collects(const struct layout *layout, const struct kernel_record *record, bool collecting)
{
	/* In a blocking region it does not have the GVL, so another thread collects. */
	return collecting && !(layout_has(layout, F_thread_blocking_region) && record->word != 0);
}

/* Whether the node of a thread is linked with another one (ruby/threads.c, is_linked()). */
static bool is_queued(const struct layout *layout, uint64_t thread, uint64_t next)
{
	return layout_has(layout, F_thread_gvl_node) && next != 0 &&
	       next != thread + layout->members[F_thread_gvl_node].offset;
}

enum sample_state kernel_process_state(const struct layout *layout, const struct ruby_thread *thread,
				       const struct kernel_switch *out, int *syscall)
{
	const struct task_look look = {
	    .known = true,
	    .asleep = true,
	    .syscall = out->syscall,
	    .stopped = (out->task_state & TASK_STOPPED_MASK) != 0 ||
		       (out->syscall < 0 && (out->task_state & TASK_FREEZABLE) != 0),
	    .paging = out->syscall < 0 && (out->task_state & TASK_UNINTERRUPTIBLE) != 0,
	};
	enum trace_state state = STATE_UNKNOWN;
	enum sample_state ret;

	*syscall = -1;
	if (out->task_state & TASK_DEAD)
		return SAMPLE_STATES;
	if (!out->unread)
		state = threads_state_of(layout, member_of(layout, F_thread_status, out->words[WORD_STATUS]),
					 layout_has(layout, F_thread_blocking_region) && out->words[WORD_BLOCKING] != 0,
					 is_queued(layout, thread->address, out->words[WORD_LINK]));
	/* The main thread ends only with its native thread (kernel/threads.bpf.h, has_ended()). */
	if (state == STATE_DEAD && !thread->main)
		return SAMPLE_STATES;
	if (state == STATE_DEAD)
		state = STATE_UNKNOWN;
	if (out->task_state == 0)
		return SAMPLE_RUNNABLE;
	/* It could run, and waits in the kernel: with the GVL, unless there is no queue that would tell. */
	if (state == STATE_UNKNOWN && layout_has(layout, F_thread_gvl_node))
		state = STATE_BLOCKED;
	ret = thread_state(state, &look, false);
	if (ret == SAMPLE_BLOCKED)
		*syscall = out->syscall;
	return ret;
}
