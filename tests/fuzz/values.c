#include "values.h"

#include <stdlib.h>

#include "ruby/inspect.h"
#include "ruby/locals.h"

/* How long the values of one image may take. An image is run many thousand times. */
#define LIMIT_NS 5000000L

/* More than a text of INSPECT_BYTES can have after its last part. */
#define LONGEST (INSPECT_BYTES + 6 * INSPECT_STRING_BYTES)

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void write_value(struct inspect *inspect, uint64_t value)
{
	struct text text = {0};

	inspect->kind = MEMORY_CHANGES;
	require(inspect_value(inspect, value, &text) != NULL);
	require(!text.failed && text.length > 0 && text.length <= LONGEST);
	text_clear(&text);
}

static void run_frame(const struct ruby *ruby, struct inspect *inspect, const struct frame *frame)
{
	struct access access = ruby_access(ruby);
	const uint64_t self = layout_has(ruby->layout, F_cfp_self) ? access_member(&access, frame->cfp, F_cfp_self) : 0;
	struct locals locals;

	write_value(inspect, self);
	require(locals_read(ruby, frame, frame->jit, &locals));
	require(locals.count <= LOCALS_MAX);
	for (size_t i = 0; i < locals.count; i++) {
		require(locals.of[i].name[0] != '\0');
		if (locals.of[i].readable)
			write_value(inspect, locals.of[i].value);
	}
	locals_clear(&locals);
}

void values_run(const struct ruby *ruby, const struct stack *stack)
{
	static struct inspect inspect;

	memory_limit(ruby->memory, LIMIT_NS);
	require(inspect_begin(ruby, &inspect));
	for (size_t i = 0; i < stack->nr_frames; i++)
		if (stack->frames[i].kind == FRAME_RUBY)
			run_frame(ruby, &inspect, &stack->frames[i]);
	inspect_end(&inspect);
	memory_limit(ruby->memory, 0);
}
