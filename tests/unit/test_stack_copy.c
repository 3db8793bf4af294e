/* Copies of a stack of this process itself: how the extent follows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layout/read.h"
#include "sampling/stack_copy.h"
#include "sampling/stack_objects.h"
#include "stack_scene.h"
#include "synthetic.h"
#include "target/live.h"

static void follows(void **state, enum copy_way way)
{
	struct synthetic *s = *state;
	const struct target target = {.operations = &live_operations, .pid = getpid(), .memory_fd = -1};
	struct stack_copy *copy = stack_copy_create(&s->ruby, &target);
	uint8_t thread[CONTEXT_BYTES], *first = new_context(s->layout, 9), *second = new_context(s->layout, 5);
	struct stack_extent extent = {.thread = (uint64_t)(uintptr_t)thread, .ec = (uint64_t)(uintptr_t)first};

	assert_non_null(copy);
	enter_context(s->layout, thread, first);
	assert_true(copy_stack(copy, &extent, way, COPY_COVERED) > 0);
	assert_int_equal(copy_stack(copy, &extent, way, COPY_COVERED), 0);
	/* Another fiber, while the first is still there, and then without. */
	enter_context(s->layout, thread, second);
	copy_stack(copy, &extent, way, COPY_COVERED);
	assert_int_equal(extent.ec, (uint64_t)(uintptr_t)second);
	enter_context(s->layout, thread, first);
	free_context(second);
	copy_stack(copy, &extent, way, COPY_COVERED);
	assert_int_equal(extent.ec, (uint64_t)(uintptr_t)first);
	/* There is nothing where the thread says that it is. */
	free_context(first);
	copy_stack(copy, &extent, way, COPY_FAILED);
	stack_copy_destroy(copy);
}

static void test_once(void **state)
{
	follows(state, COPY_ONCE);
}

static void test_twice(void **state)
{
	follows(state, COPY_TWICE);
}

/* What a frame says of its environment may be anything: nothing outside of the copy is read for it. */
static void test_environments_that_are_none(void **state)
{
	const uint64_t none[] = {0, 8, 4, UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 15, UINT64_MAX - 23, 1ULL << 63};
	struct synthetic *s = *state;
	const struct target target = {.operations = &live_operations, .pid = getpid(), .memory_fd = -1};
	struct stack_copy *copy = stack_copy_create(&s->ruby, &target);
	uint8_t thread[CONTEXT_BYTES], *context = new_context(s->layout, 2);
	uint8_t *stack = context + CONTEXT_BYTES, *end = stack + STACK_BYTES;
	struct stack_extent extent = {.thread = (uint64_t)(uintptr_t)thread, .ec = (uint64_t)(uintptr_t)context};
	const size_t size = (size_t)s->layout->sizes[S_cfp].value;
	/* The flags of the outermost frame's: small integers, not those of a method. */
	const uint64_t ep = (uint64_t)(uintptr_t)(stack + 64), flags = 1;

	assert_non_null(copy);
	enter_context(s->layout, thread, context);
	memcpy(end - size + s->layout->members[F_cfp_ep].offset, &ep, 8);
	memcpy(stack + 64, &flags, 8);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		/* Of the innermost frame, and what encloses that of the other. */
		memcpy(end - 2 * size + s->layout->members[F_cfp_ep].offset, &none[i], 8);
		memcpy(stack + 56, &none[i], 8);
		copy_stack(copy, &extent, COPY_ONCE, COPY_COVERED);
		stack_objects_copy(copy, 2, NULL);
	}
	free_context(context);
	stack_copy_destroy(copy);
}

/* Until 2.4 a thread is its own execution context: its first word is none. */
static void test_thread_that_is_a_context(void **state)
{
	FILE *stream = fopen("offsets.d/2.4.10-x86_64.layout", "re");
	const struct synthetic *s = *state;
	struct ruby ruby = s->ruby;
	struct layout *layout;
	const struct target target = {.operations = &live_operations, .pid = getpid(), .memory_fd = -1};
	const struct stack_extent unknown = {0};

	assert_non_null(stream);
	assert_null(layout_read(stream, &layout));
	fclose(stream);
	assert_false(layout_has(layout, F_thread_ec));
	ruby.layout = layout;
	for (int way = COPY_ONCE; way <= COPY_TWICE; way++) {
		struct stack_copy *copy = stack_copy_create(&ruby, &target);
		uint8_t *thread = new_context(layout, 9);
		struct stack_extent extent = unknown;

		assert_non_null(copy);
		memset(thread, 0x5a, 8);
		extent.thread = extent.ec = (uint64_t)(uintptr_t)thread;
		copy_stack(copy, &extent, (enum copy_way)way, COPY_COVERED);
		assert_int_equal(copy_stack(copy, &extent, (enum copy_way)way, COPY_COVERED), 0);
		free_context(thread);
		stack_copy_destroy(copy);
	}
	layout_destroy(layout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_once, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_twice, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_environments_that_are_none, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_thread_that_is_a_context, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
