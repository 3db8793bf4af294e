#include "facts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "layouts.h"

static void violated(const char *what, int line)
{
	fprintf(stderr, "fuzz: facts, line %d: not so: %s\n", line, what);
	abort();
}

#define REQUIRE(condition) ((condition) ? (void)0 : violated(#condition, __LINE__))

static uint64_t next_word(const uint8_t **data, size_t *size)
{
	uint64_t word = 0;
	size_t length = *size < sizeof(word) ? *size : sizeof(word);

	memcpy(&word, *data, length);
	*data += length;
	*size -= length;
	return word;
}

void facts_check_stack(const struct stack_facts *f)
{
	enum reason reason = validate_stack(f), again = validate_stack(f);
	__extension__ typedef unsigned __int128 wide;
	wide end = (wide)f->vm_stack + (wide)f->words * 8;

	REQUIRE(reason == again);
	REQUIRE(reason == REASON_NONE || reason == REASON_STACK_SIZE || reason == REASON_CFP_OUTSIDE ||
		reason == REASON_CFP_MISALIGNED || reason == REASON_TOO_DEEP);
	if (reason == REASON_STACK_SIZE) {
		REQUIRE(f->words == 0 || f->words > VALIDATE_STACK_WORDS || f->vm_stack % 8 != 0 || end > UINT64_MAX ||
			(wide)f->words * 8 < f->frame_size);
		return;
	}
	REQUIRE(end <= UINT64_MAX && f->words <= VALIDATE_STACK_WORDS && f->vm_stack % 8 == 0);
	if (reason == REASON_CFP_OUTSIDE) {
		REQUIRE(f->cfp < f->vm_stack || (wide)f->cfp + f->frame_size > end);
		return;
	}
	REQUIRE(f->cfp >= f->vm_stack && (wide)f->cfp + f->frame_size <= end);
	REQUIRE((reason == REASON_CFP_MISALIGNED) == ((end - f->cfp) % f->frame_size != 0));
	if (reason != REASON_CFP_MISALIGNED)
		REQUIRE((reason == REASON_TOO_DEEP) == ((end - f->cfp) / f->frame_size - 1 > VALIDATE_FRAMES));
}

static bool is_magic(const struct layout *layout, uint64_t magic)
{
	bool found = false;

	for (int id = E_VM_FRAME_MAGIC_METHOD; id <= E_VM_FRAME_MAGIC_DUMMY; id++)
		found |= (uint64_t)layout->enumerators[id].value == magic;
	return found;
}

/* What a JIT may push, without a pc. */
static bool is_method_or_block(const struct layout *layout, uint64_t magic)
{
	return magic == (uint64_t)layout->enumerators[E_VM_FRAME_MAGIC_METHOD].value ||
	       magic == (uint64_t)layout->enumerators[E_VM_FRAME_MAGIC_BLOCK].value;
}

static void check_frame_facts(const struct layout *layout, const struct frame_facts *f)
{
	enum frame_kind kind, kind_again;
	enum reason reason = validate_frame(layout, f, &kind), again = validate_frame(layout, f, &kind_again);
	uint64_t magic = f->flags & (uint64_t)layout->enumerators[E_VM_FRAME_MAGIC_MASK].value;
	bool escaped = f->flags & (uint64_t)layout->enumerators[E_VM_ENV_FLAG_ESCAPED].value;
	bool place = f->ep % 8 == 0 && ((f->ep >= f->vm_stack && f->ep < f->stack_end) || (escaped && f->env));
	bool slot = f->me_cref == POINTEE_NULL || f->me_cref == POINTEE_METHOD || f->me_cref == POINTEE_CREF ||
		    f->me_cref == POINTEE_SVAR;

	REQUIRE(reason == again && kind == kind_again);
	REQUIRE((reason == REASON_NONE) == (kind != FRAME_UNREADABLE));
	REQUIRE((reason == REASON_EP_OUTSIDE) == !place);
	REQUIRE((reason == REASON_FRAME_KIND) == (place && !(is_magic(layout, magic) && slot)));
	if (kind == FRAME_RUBY)
		REQUIRE(f->iseq == POINTEE_CODE && (f->pc != 0 || is_method_or_block(layout, magic)));
	if (kind == FRAME_CFUNC)
		REQUIRE(f->iseq == POINTEE_NULL &&
			magic == (uint64_t)layout->enumerators[E_VM_FRAME_MAGIC_CFUNC].value);
	if (reason == REASON_NOT_CODE)
		REQUIRE(f->pc != 0 && f->iseq != POINTEE_NULL && f->iseq != POINTEE_CODE);
}

void facts_run(const uint8_t *data, size_t size)
{
	const struct layout *layout = layouts_get(data[0] - IMAGE_FACTS);
	uint8_t choice = data[1];
	struct stack_facts stack;
	struct frame_facts frame;

	data += 2;
	size -= 2;
	stack.vm_stack = next_word(&data, &size);
	stack.words = next_word(&data, &size);
	stack.cfp = next_word(&data, &size);
	stack.frame_size = (uint64_t)layout->sizes[S_cfp].value;
	facts_check_stack(&stack);
	/* Nearer to what is true: most numbers are none of a stack. */
	stack.vm_stack &= ~UINT64_C(7);
	stack.words &= VALIDATE_STACK_WORDS * 2 - 1;
	facts_check_stack(&stack);
	stack.cfp = stack.vm_stack + stack.words * 8 - stack.cfp % (stack.words * 8 + 64);
	facts_check_stack(&stack);
	stack.cfp -= (stack.cfp - stack.vm_stack - stack.words * 8) % stack.frame_size;
	facts_check_stack(&stack);

	frame.vm_stack = stack.vm_stack;
	frame.stack_end = stack.vm_stack + (stack.words & (VALIDATE_STACK_WORDS - 1)) * 8;
	frame.pc = next_word(&data, &size) & (choice & 0x80 ? 0 : UINT64_MAX);
	frame.ep = next_word(&data, &size);
	frame.flags = next_word(&data, &size);
	frame.iseq = choice % (POINTEE_OTHER + 1);
	frame.me_cref = choice / 8 % (POINTEE_OTHER + 1);
	frame.env = choice & 0x40;
	check_frame_facts(layout, &frame);
	frame.ep = frame.vm_stack + frame.ep % 4096 * 8;
	check_frame_facts(layout, &frame);
	frame.flags &= ~(uint64_t)layout->enumerators[E_VM_FRAME_MAGIC_MASK].value;
	frame.flags |= (uint64_t)layout->enumerators[E_VM_FRAME_MAGIC_METHOD + (int)(frame.flags % 9)].value;
	check_frame_facts(layout, &frame);
	frame.me_cref = POINTEE_METHOD;
	check_frame_facts(layout, &frame);
}
