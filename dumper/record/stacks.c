#include "record/stacks.h"

#include <stdlib.h>

#include "base/text.h"

/* Set in the key of a native function: addresses in the program's half of the address space have not this bit. */
#define NATIVE_FUNCTION (UINT64_C(1) << 62)

static uint32_t add_function(struct profile *tables, const struct profile_function *function)
{
	const struct profile_function mine = {
	    .kind = function->kind,
	    .name = profile_string(tables, function->name),
	    .label = profile_string(tables, function->label),
	    .path = profile_string(tables, function->path),
	    .absolute_path = profile_string(tables, function->absolute_path),
	    .first_line = function->first_line,
	};

	return mine.name && mine.label ? profile_add_function(tables, &mine) : UINT32_MAX;
}

/* Adds a frame of a function below a node. UINT32_MAX if there is not enough memory, or if there is no function or no node. */
static uint32_t add_frame(struct profile *tables, uint32_t parent, uint32_t function, int64_t line)
{
	uint32_t index = UINT32_MAX;

	if (function != UINT32_MAX && parent != UINT32_MAX)
		index = profile_add_frame(tables, function, line);
	if (index != UINT32_MAX)
		index = profile_add_node(tables, parent, index);
	return index;
}

static uint32_t add_mark_below(struct profile *tables, uint32_t parent, const char *what, enum reason reason)
{
	const char *why = validate_reason_name(reason);
	struct text text = {0};
	struct profile_function mark = {.kind = PROFILE_MARK};
	uint32_t node;

	text_format(&text, why ? "(%s: %s)" : "(%s)", what, why);
	mark.name = mark.label = text.data;
	node = add_frame(tables, parent, add_function(tables, &mark), 0);
	text_clear(&text);
	return node;
}

static uint32_t function_of(struct profile *tables, struct stacks_functions *functions, const struct trace_frame *frame)
{
	const size_t at = frame->method % STACKS_FUNCTIONS;
	bool cfunc = frame->kind == TRACE_CFUNC;
	const struct profile_function function = {
	    .kind = cfunc ? PROFILE_CFUNC : PROFILE_RUBY,
	    .name = frame->name ? frame->name : frame->label,
	    .label = frame->label ? frame->label : frame->name,
	    /* The path that Ruby gives a C function is its caller's. */
	    .path = cfunc ? NULL : frame->path,
	    .absolute_path = cfunc ? NULL : frame->absolute_path,
	    .first_line = cfunc ? 0 : frame->first_line,
	};

	if (frame->method == 0 || functions->of[at].method != frame->method) {
		functions->of[at].function = add_function(tables, &function);
		functions->of[at].method = functions->of[at].function != UINT32_MAX ? frame->method : 0;
	}
	return functions->of[at].function;
}

static uint32_t add_trace_frame(struct profile *tables, struct stacks_functions *functions, uint32_t parent,
				const struct trace_frame *frame)
{
	if (frame->kind == TRACE_UNREADABLE || (!frame->name && !frame->label))
		return add_mark_below(tables, parent, "unreadable", frame->reason);
	return add_frame(tables, parent, function_of(tables, functions, frame), frame->has_line ? frame->line : 0);
}

uint32_t stacks_add(struct profile *tables, struct stacks_functions *functions, const struct trace_thread *stack)
{
	uint32_t node = 0;

	if (stack->verdict == VERDICT_TORN || stack->verdict == VERDICT_UNREADABLE)
		return add_mark_below(tables, 0, validate_verdict_name(stack->verdict), stack->reason);
	if (stack->verdict == VERDICT_TRUNCATED)
		node = add_mark_below(tables, 0, "truncated", stack->reason);
	for (size_t i = stack->nr_frames; i-- > 0 && node != UINT32_MAX;)
		node = add_trace_frame(tables, functions, node, &stack->frames[i]);
	return node;
}

uint32_t stacks_add_window(struct profile *tables, uint32_t node)
{
	return add_mark_below(tables, node, validate_verdict_name(VERDICT_TORN), REASON_WINDOW);
}

static uint32_t native_function(struct profile *tables, struct stacks_functions *functions,
				const struct native_frame *frame)
{
	/* The same texts have the same addresses. The address of a function may be that of another one later. */
	const uint64_t key = ((uint64_t)(uintptr_t)frame->name * UINT64_C(0x9e3779b97f4a7c15) ^
			      (uint64_t)(uintptr_t)frame->file * UINT64_C(0xc2b2ae3d27d4eb4f)) |
			     NATIVE_FUNCTION;
	const size_t at = key % STACKS_FUNCTIONS;
	const struct profile_function function = {
	    .kind = PROFILE_NATIVE, .name = frame->name, .label = frame->name, .path = frame->file};

	if (functions->of[at].method != key) {
		functions->of[at].function = add_function(tables, &function);
		functions->of[at].method = functions->of[at].function != UINT32_MAX ? key : 0;
	}
	return functions->of[at].function;
}

/* A native function, or a frame of Ruby. */
struct mixed_item {
	const struct native_frame *native; /* NULL: `ruby` is set */
	const struct trace_frame *ruby;
};

/* Puts the frames of Ruby in their places among the native functions. Returns how many items there are. */
static size_t place_frames(const struct trace_thread *stack, const struct mixed_stack *mixed, struct mixed_item *ret)
{
	size_t count = 0, shown = 0;

	for (size_t i = 0; i < mixed->count; i++) {
		const struct mixed_frame *frame = &mixed->of[i];

		/* Some control frames are not shown. */
		if (frame->native)
			ret[count++] = (struct mixed_item){.native = &frame->function};
		else if (shown < stack->nr_frames && stack->frames[shown].address == frame->cfp)
			ret[count++] = (struct mixed_item){.ruby = &stack->frames[shown++]};
	}
	/* Frames can be in another order than control frames (resolve.h). */
	while (shown < stack->nr_frames)
		ret[count++] = (struct mixed_item){.ruby = &stack->frames[shown++]};
	return count;
}

uint32_t stacks_add_mixed(struct profile *tables, struct stacks_functions *functions, const struct trace_thread *stack,
			  const struct mixed_stack *mixed)
{
	struct mixed_item *items = calloc(mixed->count + stack->nr_frames + 1, sizeof(*items));
	uint32_t node = items ? 0 : UINT32_MAX;

	if (items && stack->verdict == VERDICT_TRUNCATED)
		node = add_mark_below(tables, node, validate_verdict_name(VERDICT_TRUNCATED), stack->reason);
	if (items && mixed->cut && node != UINT32_MAX)
		node = add_mark_below(tables, node, "native frames missing", REASON_NONE);
	for (size_t i = items ? place_frames(stack, mixed, items) : 0; i-- > 0 && node != UINT32_MAX;)
		node = items[i].native ? add_frame(tables, node, native_function(tables, functions, items[i].native), 0)
				       : add_trace_frame(tables, functions, node, items[i].ruby);
	free(items);
	return node;
}

uint32_t stacks_add_native(struct profile *tables, struct stacks_functions *functions, uint32_t node,
			   const struct inner_functions *native)
{
	if (native->cut)
		node = add_mark_below(tables, node, "native frames missing", REASON_NONE);
	for (size_t i = native->count; i-- > 0 && node != UINT32_MAX;)
		node = add_frame(tables, node, native_function(tables, functions, &native->of[i]), 0);
	return node;
}

uint32_t stacks_add_mark(struct profile *tables, const char *what, enum reason reason)
{
	return add_mark_below(tables, 0, what, reason);
}
