#include "sampling/sample.h"

#include <string.h>

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

/* A packed sample, its stack, the frames of that, the native stack, and the stack copy are one behind the other. */
static size_t in_sixteens(size_t length)
{
	return (length + 15) / 16 * 16;
}

static size_t frames_length(const struct sample *sample)
{
	return sample->walked ? in_sixteens(sample->walked->nr_frames * sizeof(*sample->walked->frames)) : 0;
}

static enum stack_copy_parts parts_of(const struct sample *sample, bool again)
{
	if (!sample->copied || sample->cache.result == CACHE_HIT)
		return PACK_NO_STACK;
	return sample->walked && !again ? PACK_OBJECTS : PACK_ALL;
}

size_t sample_packed_length(const struct sample *sample, bool again)
{
	return in_sixteens(sizeof(*sample)) + in_sixteens(sizeof(*sample->walked)) + frames_length(sample) +
	       in_sixteens(sample->native.length + sample->native.outer_length) +
	       stack_copy_packed_length(sample->copy, parts_of(sample, again));
}

struct sample *sample_pack(const struct sample *sample, bool again, void *room)
{
	uint8_t *next = (uint8_t *)room + in_sixteens(sizeof(*sample));
	struct stack *walked = (struct stack *)(void *)next;
	struct sample *packed = room;

	*packed = *sample;
	next += in_sixteens(sizeof(*walked));
	if (sample->walked) {
		*walked = *sample->walked;
		walked->frames = (struct frame *)(void *)next;
		memcpy(walked->frames, sample->walked->frames, walked->nr_frames * sizeof(*walked->frames));
		packed->walked = walked;
	}
	next += frames_length(sample);
	packed->native.functions = NULL;
	packed->native.nr_functions = 0;
	packed->native.bytes = next;
	if (sample->native.length > 0)
		memcpy(next, sample->native.bytes, sample->native.length + sample->native.outer_length);
	next += in_sixteens(sample->native.length + sample->native.outer_length);
	packed->copy = stack_copy_pack(sample->copy, parts_of(sample, again), next);
	return packed;
}

struct unwind_registers sample_registers(const struct user_regs_struct *registers)
{
	return (struct unwind_registers){
	    .ip = registers->rip,
	    .known = (1u << UNWIND_REGISTERS) - 1,
	    .of = {registers->rax, registers->rdx, registers->rcx, registers->rbx, registers->rsi, registers->rdi,
		   registers->rbp, registers->rsp, registers->r8, registers->r9, registers->r10, registers->r11,
		   registers->r12, registers->r13, registers->r14, registers->r15},
	};
}

void sample_reject(struct sample *sample, enum reason reason)
{
	sample->copied = sample->no_stack = false;
	sample->walked = NULL;
	sample->cache.result = CACHE_MISS;
	sample->cache.entry = CACHE_NONE;
	sample->reason = reason;
}
