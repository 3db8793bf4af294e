/* Frames that are known by their words: which of a stack in this process are, and what changes that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampling/known_frames.h"
#include "stack_scene.h"
#include "synthetic.h"
#include "target/live.h"

/* The oldest one was never called. */
#define FRAMES	  8u
#define INNERMOST 2u

enum word { ME_CREF, SPECVAL, FLAGS };

struct scene {
	struct synthetic *s;
	struct stack_copy *copy;
	struct known_frames *known;
	uint8_t thread[CONTEXT_BYTES], *context;
	struct stack_extent extent;
};

static uint8_t *bytes_of(struct scene *scene, unsigned int older)
{
	return frame_of(scene->s->layout, scene->context, FRAMES, older);
}

static void put(struct scene *scene, unsigned int older, enum layout_member_id id, uint64_t word)
{
	memcpy(bytes_of(scene, older) + scene->s->layout->members[id].offset, &word, 8);
}

static uint64_t ep_of(struct scene *scene, unsigned int older)
{
	return (uint64_t)(uintptr_t)scene->context + CONTEXT_BYTES + (uint64_t)(FRAMES - older) * 64;
}

static void put_env(struct scene *scene, unsigned int older, enum word word, uint64_t value)
{
	memcpy((uint8_t *)(uintptr_t)ep_of(scene, older) - (FLAGS - word) * 8, &value, 8);
}

static uint64_t local_flags(const struct scene *scene)
{
	return synthetic_enum(scene->s, E_VM_ENV_FLAG_LOCAL) | 1;
}

/* Each frame has code of its own and, but for the innermost, a method entry of its own. */
static void begin(void **state, struct scene *scene)
{
	struct synthetic *s = *state;
	const struct target target = {.operations = &live_operations, .pid = getpid(), .memory_fd = -1};

	synthetic_without(s, F_cfp_flag);
	synthetic_without(s, F_cfp_me);
	s->ruby.zjit = ZJIT_OFF;
	*scene = (struct scene){.s = s};
	scene->copy = stack_copy_create(&s->ruby, &target);
	scene->known = known_frames_create();
	assert_non_null(scene->copy);
	assert_non_null(scene->known);
	scene->context = new_context(s->layout, FRAMES);
	scene->extent.thread = (uint64_t)(uintptr_t)scene->thread;
	scene->extent.ec = (uint64_t)(uintptr_t)scene->context;
	enter_context(s->layout, scene->thread, scene->context);
	for (unsigned int i = 0; i < FRAMES; i++) {
		put(scene, i, F_cfp_iseq, 0x1000 + i * 0x100);
		put(scene, i, F_cfp_pc, 0x8000 + i);
		put(scene, i, F_cfp_ep, ep_of(scene, i));
		put(scene, i, F_cfp_jit_return, 0);
		put_env(scene, i, ME_CREF, 0x4000 + i * 0x100);
		put_env(scene, i, FLAGS, local_flags(scene));
	}
}

static void end(struct scene *scene)
{
	free_context(scene->context);
	known_frames_destroy(scene->known);
	stack_copy_destroy(scene->copy);
}

static void find(struct scene *scene)
{
	copy_stack(scene->copy, &scene->extent, COPY_ONCE, COPY_COVERED);
	known_frames_find(scene->known, scene->copy);
}

static struct frame walked(struct scene *scene, unsigned int older)
{
	return (struct frame){.cfp = (uint64_t)(uintptr_t)bytes_of(scene, older),
			      .pc = 0x8000 + older,
			      .iseq = 0x1000 + older * 0x100,
			      .method = 0x4000 + older * 0x100,
			      .kind = FRAME_RUBY,
			      .own_method = older % 2 == 0,
			      .finish = older % 3 == 0};
}

/* Adds all frames of the stack as it is. */
static void learn(struct scene *scene)
{
	find(scene);
	for (unsigned int i = 0; i < FRAMES - 1; i++) {
		const struct frame frame = walked(scene, i);

		known_frames_add(scene->known, scene->copy, &frame);
	}
	find(scene);
}

static const struct frame *found(struct scene *scene, unsigned int older)
{
	return known_stack_frame(known_frames_found(scene->known), (uint64_t)(uintptr_t)bytes_of(scene, older),
				 (uint64_t)scene->s->layout->sizes[S_cfp].value);
}

/* All but the innermost two are known, and but for one. */
static void check_but(struct scene *scene, unsigned int but)
{
	find(scene);
	for (unsigned int i = 0; i < FRAMES; i++) {
		const bool known = i >= INNERMOST && i < FRAMES - 1 && i != but;

		assert_int_equal(found(scene, i) != NULL, known);
	}
}

static void test_learned(void **state)
{
	struct scene scene;

	begin(state, &scene);
	find(&scene);
	for (unsigned int i = 0; i < FRAMES; i++)
		assert_null(found(&scene, i));
	learn(&scene);
	check_but(&scene, FRAMES);
	for (unsigned int i = INNERMOST; i < FRAMES - 1; i++) {
		const struct frame expected = walked(&scene, i), *frame = found(&scene, i);

		assert_int_equal(frame->cfp, expected.cfp);
		assert_int_equal(frame->pc, expected.pc);
		assert_int_equal(frame->iseq, expected.iseq);
		assert_int_equal(frame->method, expected.method);
		assert_int_equal(frame->kind, expected.kind);
		assert_int_equal(frame->own_method, expected.own_method);
		assert_int_equal(frame->finish, expected.finish);
		assert_false(frame->jit);
	}
	known_frames_forget(scene.known);
	find(&scene);
	for (unsigned int i = 0; i < FRAMES; i++)
		assert_null(found(&scene, i));
	end(&scene);
}

/* Another pc, and jit_return, are told; whatever else changes, the frame is not known. */
static void test_changed(void **state)
{
	struct scene scene;

	begin(state, &scene);
	learn(&scene);
	put(&scene, 4, F_cfp_pc, 0x9999);
	put(&scene, 4, F_cfp_jit_return, 0x7777);
	check_but(&scene, FRAMES);
	assert_int_equal(found(&scene, 4)->pc, 0x9999);
	assert_true(found(&scene, 4)->jit);
	put(&scene, 4, F_cfp_pc, 0);
	check_but(&scene, 4);
	put(&scene, 4, F_cfp_pc, 0x8004);
	check_but(&scene, FRAMES);
	put(&scene, 4, F_cfp_iseq, 0x1408);
	check_but(&scene, 4);
	put(&scene, 4, F_cfp_iseq, 0x1400);
	put_env(&scene, 4, ME_CREF, 0x4408);
	check_but(&scene, 4);
	put_env(&scene, 4, ME_CREF, 0);
	check_but(&scene, 4);
	put_env(&scene, 4, ME_CREF, 0x4400);
	put_env(&scene, 4, FLAGS, local_flags(&scene) | UINT64_C(1) << 40);
	check_but(&scene, 4);
	/* While an environment is being moved to the heap, its object is there instead of flags. */
	put_env(&scene, 4, FLAGS, local_flags(&scene) & ~UINT64_C(1));
	check_but(&scene, 4);
	put_env(&scene, 4, FLAGS, local_flags(&scene));
	put(&scene, 4, F_cfp_ep, (uint64_t)(uintptr_t)scene.thread);
	check_but(&scene, 4);
	put(&scene, 4, F_cfp_ep, ep_of(&scene, 4));
	check_but(&scene, FRAMES);
	end(&scene);
}

/* A block's frame leads to the method entry of an older frame, but not over the heap, and not if it has another one. */
static void test_block(void **state)
{
	struct scene scene;
	struct frame block;

	begin(state, &scene);
	put_env(&scene, 3, ME_CREF, 0);
	put_env(&scene, 3, FLAGS, 1);
	put_env(&scene, 3, SPECVAL, ep_of(&scene, 5));
	find(&scene);
	block = walked(&scene, 3);
	block.method = 0x4500;
	known_frames_add(scene.known, scene.copy, &block);
	find(&scene);
	assert_non_null(found(&scene, 3));
	assert_int_equal(found(&scene, 3)->method, 0x4500);
	put_env(&scene, 5, ME_CREF, 0x4600);
	find(&scene);
	assert_null(found(&scene, 3));
	put_env(&scene, 5, ME_CREF, 0x4500);
	put_env(&scene, 3, ME_CREF, 0x4500);
	find(&scene);
	assert_null(found(&scene, 3));
	put_env(&scene, 3, ME_CREF, 0);
	put_env(&scene, 3, SPECVAL, (uint64_t)(uintptr_t)scene.thread);
	find(&scene);
	assert_null(found(&scene, 3));
	put_env(&scene, 3, SPECVAL, ep_of(&scene, 5));
	find(&scene);
	assert_non_null(found(&scene, 3));
	end(&scene);
}

/* An environment that is its own parent, and an older Ruby. */
static void test_never(void **state)
{
	struct scene scene;
	struct frame block;

	begin(state, &scene);
	put_env(&scene, 3, ME_CREF, 0);
	put_env(&scene, 3, FLAGS, 1);
	put_env(&scene, 3, SPECVAL, ep_of(&scene, 3));
	find(&scene);
	block = walked(&scene, 3);
	known_frames_add(scene.known, scene.copy, &block);
	find(&scene);
	assert_null(found(&scene, 3));
	learn(&scene);
	check_but(&scene, 3);
	synthetic_with(scene.s, F_cfp_me);
	find(&scene);
	for (unsigned int i = 0; i < FRAMES; i++)
		assert_null(found(&scene, i));
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_learned, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_changed, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_block, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_never, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
