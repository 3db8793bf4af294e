#include "stack_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "ruby/context.h"

uint8_t *new_context(const struct layout *layout, unsigned int frames)
{
	uint64_t words = STACK_BYTES / 8, vm_stack, cfp;
	uint8_t *context =
	    mmap(NULL, CONTEXT_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(context, MAP_FAILED);
	vm_stack = (uint64_t)(uintptr_t)context + CONTEXT_BYTES;
	cfp = vm_stack + STACK_BYTES - frames * (uint64_t)layout->sizes[S_cfp].value;
	memcpy(context + layout->members[context_members(layout).vm_stack].offset, &vm_stack, 8);
	memcpy(context + layout->members[context_members(layout).vm_stack_size].offset, &words, 8);
	memcpy(context + layout->members[context_members(layout).cfp].offset, &cfp, 8);
	return context;
}

void free_context(uint8_t *context)
{
	assert_int_equal(munmap(context, CONTEXT_BYTES + STACK_BYTES), 0);
}

void enter_context(const struct layout *layout, uint8_t *thread, const uint8_t *context)
{
	memcpy(thread + layout->members[F_thread_ec].offset, &context, sizeof(context));
}

uint8_t *frame_of(const struct layout *layout, uint8_t *context, unsigned int frames, unsigned int older)
{
	return context + CONTEXT_BYTES + STACK_BYTES - (size_t)(frames - older) * (size_t)layout->sizes[S_cfp].value;
}

int copy_stack(struct stack_copy *copy, struct stack_extent *extent, enum copy_way way, enum copy_result expected)
{
	enum reason reason;

	for (int missed = 0;; missed++) {
		enum copy_result result = stack_copy_take(copy, extent, way, &reason);

		if (result == COPY_MISSED && missed < 4)
			continue;
		assert_int_equal(result, expected);
		return missed;
	}
}
