#include "sampling/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "ruby/context.h"
#include "ruby/environment.h"

/* The most environments of one frame that are followed, and the most words that one frame has in a fingerprint. */
#define NESTED_MAX	32u
#define WORDS_A_FRAME	(4u + ENVIRONMENT_WORDS * NESTED_MAX)
#define WORDS_A_CONTEXT 6u

/* The deepest stack that has a fingerprint: deeper stacks are rare, and have many words. */
#define FRAMES_MAX 2048u

static bool has_words(const struct ruby *ruby)
{
	const struct layout *layout = ruby->layout;

	return layout_has(layout, F_thread_ec) && layout_has(layout, F_ec_thread_ptr) &&
	       !layout_has(layout, F_cfp_flag) && !layout_has(layout, F_cfp_me);
}

static bool make_room(struct fingerprint *ret, size_t more)
{
	return array_make_room(ret->words, ret->capacity, ret->count + more);
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* The words of an environment on the stack, and of those around it, up to the first that is local or on the heap. */
static bool add_envs(const struct ruby *ruby, const struct stack_copy *copy, uint64_t ep, struct fingerprint *ret)
{
	const struct stack_facts *facts = stack_copy_facts(copy);
	const uint64_t local = (uint64_t)ruby->layout->enumerators[E_VM_ENV_FLAG_LOCAL].value;
	const uint64_t end = facts->vm_stack + facts->words * 8;

	for (unsigned int nested = 0; ep >= facts->vm_stack && ep < end; nested++) {
		const uint64_t from = ep - ENVIRONMENT_BEFORE;
		const uint8_t *words = ep % 8 == 0 ? stack_copy_bytes(copy, from, (size_t)ENVIRONMENT_WORDS * 8) : NULL;

		if (!words || ep >= facts->cfp || nested == NESTED_MAX)
			return false;
		memcpy(ret->words + ret->count, words, (size_t)ENVIRONMENT_WORDS * 8);
		ret->count += ENVIRONMENT_WORDS;
		if (ret->words[ret->count - 1] & local)
			return true;
		ep = environment_previous(ret->words[ret->count - 2]);
	}
	return true;
}

bool fingerprint_take(const struct ruby *ruby, const struct stack_copy *copy, enum fingerprint_of of,
		      struct fingerprint *ret)
{
	const struct layout *layout = ruby->layout;
	const struct stack_facts *facts = stack_copy_facts(copy);
	const struct layout_member *members = layout->members;
	const uint64_t end = facts->vm_stack + facts->words * 8, size = facts->frame_size;
	const bool has_jit = layout_has(layout, F_cfp_jit_return);
	const bool may_be_zjit = ruby->zjit != ZJIT_OFF && layout_has(layout, F_zjit_frame_pc);
	const uint64_t ec = stack_copy_context(copy);
	const size_t count = (size_t)((end - facts->cfp) / size);
	const uint8_t *owner, *frames;

	ret->count = 0;
	if (!has_words(ruby))
		return false;
	owner = stack_copy_bytes(copy, ec + members[F_ec_thread_ptr].offset, 8);
	frames = stack_copy_bytes(copy, facts->cfp, count * size);
	if (!owner || !frames || count > FRAMES_MAX || !make_room(ret, WORDS_A_CONTEXT))
		return false;
	ret->words[ret->count++] = ec;
	ret->words[ret->count++] = word_at(owner);
	ret->words[ret->count++] = facts->vm_stack;
	ret->words[ret->count++] = facts->words;
	ret->words[ret->count++] = facts->cfp;
	ret->words[ret->count++] = of;
	for (size_t i = of == FINGERPRINT_OUTER ? 1 : 0; i < count; i++) {
		const uint8_t *frame = frames + i * size;
		const uint64_t ep = word_at(frame + members[F_cfp_ep].offset);
		const uint64_t jit_return = has_jit ? word_at(frame + members[F_cfp_jit_return].offset) : 0;

		if ((jit_return != 0 && may_be_zjit) || !make_room(ret, WORDS_A_FRAME))
			return false;
		ret->words[ret->count++] = word_at(frame + members[F_cfp_pc].offset);
		ret->words[ret->count++] = word_at(frame + members[F_cfp_iseq].offset);
		ret->words[ret->count++] = ep;
		/* jit_return shows only whether a JIT has made the frame. */
		ret->words[ret->count++] = jit_return != 0;
		if (!add_envs(ruby, copy, ep, ret))
			return false;
	}
	return true;
}
