/* Shots of a stack of this process itself: how the aim follows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "layout/read.h"
#include "sample/shot.h"
#include "synthetic.h"
#include "vm/context.h"

#define CONTEXT_BYTES 4096u
#define STACK_BYTES   65536u

/* An execution context, and its stack behind it: they come and go together, as those of a fiber. */
static uint8_t *new_context(const struct layout *layout, unsigned int frames)
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

static void free_context(uint8_t *context)
{
	assert_int_equal(munmap(context, CONTEXT_BYTES + STACK_BYTES), 0);
}

static void enter(const struct layout *layout, uint8_t *thread, const uint8_t *context)
{
	memcpy(thread + layout->members[F_thread_ec].offset, &context, sizeof(context));
}

/* Copies until the aim is right; how often it was not. */
static int shoot(struct shot *shot, struct shot_aim *aim, enum shot_way way, enum shot_result expected)
{
	enum reason reason;

	for (int missed = 0;; missed++) {
		enum shot_result result = shot_copy(shot, aim, way, &reason);

		if (result == SHOT_MISSED && missed < 4)
			continue;
		assert_int_equal(result, expected);
		return missed;
	}
}

static void follows(void **state, enum shot_way way)
{
	struct synthetic *s = *state;
	const struct target target = {.pid = getpid(), .memory_fd = -1};
	struct shot *shot = shot_create(&s->ruby, &target);
	uint8_t thread[CONTEXT_BYTES], *first = new_context(s->layout, 9), *second = new_context(s->layout, 5);
	struct shot_aim aim = {.thread = (uint64_t)(uintptr_t)thread, .ec = (uint64_t)(uintptr_t)first};

	assert_non_null(shot);
	enter(s->layout, thread, first);
	assert_true(shoot(shot, &aim, way, SHOT_COVERED) > 0);
	assert_int_equal(shoot(shot, &aim, way, SHOT_COVERED), 0);
	/* Another fiber, while the first is still there, and then without. */
	enter(s->layout, thread, second);
	shoot(shot, &aim, way, SHOT_COVERED);
	assert_int_equal(aim.ec, (uint64_t)(uintptr_t)second);
	enter(s->layout, thread, first);
	free_context(second);
	shoot(shot, &aim, way, SHOT_COVERED);
	assert_int_equal(aim.ec, (uint64_t)(uintptr_t)first);
	/* There is nothing where the thread says that it is. */
	free_context(first);
	shoot(shot, &aim, way, SHOT_FAILED);
	shot_destroy(shot);
}

static void test_once(void **state)
{
	follows(state, SHOT_ONCE);
}

static void test_twice(void **state)
{
	follows(state, SHOT_TWICE);
}

/* What a frame says of its environment may be anything: nothing outside of the shot is read for it. */
static void test_environments_that_are_none(void **state)
{
	const uint64_t none[] = {0, 8, 4, UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 15, UINT64_MAX - 23, 1ULL << 63};
	struct synthetic *s = *state;
	const struct target target = {.pid = getpid(), .memory_fd = -1};
	struct shot *shot = shot_create(&s->ruby, &target);
	uint8_t thread[CONTEXT_BYTES], *context = new_context(s->layout, 2);
	uint8_t *stack = context + CONTEXT_BYTES, *end = stack + STACK_BYTES;
	struct shot_aim aim = {.thread = (uint64_t)(uintptr_t)thread, .ec = (uint64_t)(uintptr_t)context};
	const size_t size = (size_t)s->layout->sizes[S_cfp].value;
	/* The flags of the outermost frame's: small integers, not those of a method. */
	const uint64_t ep = (uint64_t)(uintptr_t)(stack + 64), flags = 1;

	assert_non_null(shot);
	enter(s->layout, thread, context);
	memcpy(end - size + s->layout->members[F_cfp_ep].offset, &ep, 8);
	memcpy(stack + 64, &flags, 8);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		/* Of the innermost frame, and what encloses that of the other. */
		memcpy(end - 2 * size + s->layout->members[F_cfp_ep].offset, &none[i], 8);
		memcpy(stack + 56, &none[i], 8);
		shoot(shot, &aim, SHOT_ONCE, SHOT_COVERED);
		shot_copy_objects(shot, 2);
	}
	free_context(context);
	shot_destroy(shot);
}

/* Until 2.4 a thread is its own execution context: its first word is none. */
static void test_thread_that_is_a_context(void **state)
{
	FILE *stream = fopen("offsets.d/2.4.10-x86_64.layout", "re");
	const struct synthetic *s = *state;
	struct ruby ruby = s->ruby;
	struct layout *layout;
	const struct target target = {.pid = getpid(), .memory_fd = -1};
	const struct shot_aim unknown = {0};

	assert_non_null(stream);
	assert_null(layout_read(stream, &layout));
	fclose(stream);
	assert_false(layout_has(layout, F_thread_ec));
	ruby.layout = layout;
	for (int way = SHOT_ONCE; way <= SHOT_TWICE; way++) {
		struct shot *shot = shot_create(&ruby, &target);
		uint8_t *thread = new_context(layout, 9);
		struct shot_aim aim = unknown;

		assert_non_null(shot);
		memset(thread, 0x5a, 8);
		aim.thread = aim.ec = (uint64_t)(uintptr_t)thread;
		shoot(shot, &aim, (enum shot_way)way, SHOT_COVERED);
		assert_int_equal(shoot(shot, &aim, (enum shot_way)way, SHOT_COVERED), 0);
		free_context(thread);
		shot_destroy(shot);
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
