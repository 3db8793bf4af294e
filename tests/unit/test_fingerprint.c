/* Fingerprints of a stack of this process itself, of the layout of Ruby 3.4.5: what is in them, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layout/read.h"
#include "sampling/fingerprint.h"
#include "synthetic.h"
#include "target/live.h"

#define WORDS  512u
#define FRAMES 4u
#define LOCAL  UINT64_C(3) /* VM_ENV_FLAG_LOCAL of a Fixnum */

struct scene {
	struct synthetic *s;
	struct layout *layout;
	struct ruby ruby;
	struct stack_copy *copy;
	struct fingerprint first, second;
	uint64_t stack[WORDS];
	uint8_t thread[4096], ec[4096];
};

static uint64_t address_of(const void *object)
{
	return (uint64_t)(uintptr_t)object;
}

static void set(struct scene *scene, void *object, enum layout_member_id id, uint64_t value)
{
	memcpy((uint8_t *)object + scene->layout->members[id].offset, &value, 8);
}

/* A frame, counted from the innermost. */
static uint8_t *frame(struct scene *scene, size_t i)
{
	const size_t size = (size_t)scene->layout->sizes[S_cfp].value;

	return (uint8_t *)(scene->stack + WORDS) - (FRAMES + 1 - i) * size;
}

/* The word of an environment on the stack that its ep points to. */
static uint64_t *ep_of(struct scene *scene, size_t i)
{
	return &scene->stack[4 * (FRAMES - i)];
}

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	const struct target target = {.operations = &live_operations, .pid = getpid(), .memory_fd = -1};
	FILE *stream = fopen("offsets.d/3.4.5-x86_64.layout", "re");

	assert_non_null(scene);
	assert_non_null(stream);
	assert_null(layout_read(stream, &scene->layout));
	fclose(stream);
	*state = scene;
	synthetic_set_up((void **)&scene->s);
	scene->ruby = scene->s->ruby;
	scene->ruby.layout = scene->layout;
	set(scene, scene->thread, F_thread_ec, address_of(scene->ec));
	set(scene, scene->ec, F_ec_thread_ptr, address_of(scene->thread));
	set(scene, scene->ec, F_ec_vm_stack, address_of(scene->stack));
	set(scene, scene->ec, F_ec_vm_stack_size, WORDS);
	set(scene, scene->ec, F_ec_cfp, address_of(frame(scene, 0)));
	for (size_t i = 0; i < FRAMES; i++) {
		uint64_t *ep = ep_of(scene, i);

		set(scene, frame(scene, i), F_cfp_pc, 0x1000 + i);
		set(scene, frame(scene, i), F_cfp_iseq, 0x2000 + i);
		set(scene, frame(scene, i), F_cfp_ep, address_of(ep));
		ep[-2] = 0x3000 + i;
		ep[0] = LOCAL;
	}
	scene->copy = stack_copy_create(&scene->ruby, &target);
	return scene->copy ? 0 : -1;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	stack_copy_destroy(scene->copy);
	synthetic_tear_down((void **)&scene->s);
	layout_destroy(scene->layout);
	free(scene->first.words);
	free(scene->second.words);
	free(scene);
	return 0;
}

static bool take_of(struct scene *scene, enum fingerprint_of of, struct fingerprint *ret)
{
	struct stack_extent extent = {.thread = address_of(scene->thread), .ec = address_of(scene->ec)};
	enum copy_result result = COPY_MISSED;
	enum reason reason;

	for (int i = 0; i < 4 && result == COPY_MISSED; i++)
		result = stack_copy_take(scene->copy, &extent, COPY_ONCE, &reason);
	assert_int_equal(result, COPY_COVERED);
	return fingerprint_take(&scene->ruby, scene->copy, of, ret);
}

static bool take(struct scene *scene, struct fingerprint *ret)
{
	return take_of(scene, FINGERPRINT_ALL, ret);
}

static bool is_same_of(struct scene *scene, enum fingerprint_of of)
{
	assert_true(take_of(scene, of, &scene->second));
	return scene->first.count == scene->second.count &&
	       memcmp(scene->first.words, scene->second.words, scene->first.count * 8) == 0;
}

static bool is_same(struct scene *scene)
{
	return is_same_of(scene, FINGERPRINT_ALL);
}

static void test_what_is_in_it(void **state)
{
	struct scene *scene = *state;

	assert_true(take(scene, &scene->first));
	assert_true(is_same(scene));
	/* Local variables change all the time. */
	ep_of(scene, 1)[-3] ^= 1;
	assert_true(is_same(scene));
	for (size_t i = 0; i < FRAMES; i++) {
		static const enum layout_member_id members[] = {F_cfp_pc, F_cfp_iseq, F_cfp_jit_return};

		for (size_t member = 0; member < 3; member++) {
			uint64_t before;

			memcpy(&before, frame(scene, i) + scene->layout->members[members[member]].offset, 8);
			set(scene, frame(scene, i), members[member], before ^ 0x100);
			assert_false(is_same(scene));
			set(scene, frame(scene, i), members[member], before);
		}
		for (int word = -2; word <= 0; word++) {
			ep_of(scene, i)[word] ^= 0x100;
			assert_false(is_same(scene));
			ep_of(scene, i)[word] ^= 0x100;
		}
	}
	assert_true(is_same(scene));
	/* One frame less. */
	set(scene, scene->ec, F_ec_cfp, address_of(frame(scene, 1)));
	assert_false(is_same(scene));
}

/* Outer frames do not depend on the innermost one, but on where it is; and they are no stack of one frame less. */
static void test_outer(void **state)
{
	struct scene *scene = *state;

	assert_true(take_of(scene, FINGERPRINT_OUTER, &scene->first));
	set(scene, frame(scene, 0), F_cfp_pc, 0x77);
	set(scene, frame(scene, 0), F_cfp_iseq, 0x88);
	set(scene, frame(scene, 0), F_cfp_ep, 0x99);
	assert_true(is_same_of(scene, FINGERPRINT_OUTER));
	set(scene, frame(scene, 1), F_cfp_pc, 0x77);
	assert_false(is_same_of(scene, FINGERPRINT_OUTER));
	assert_true(take_of(scene, FINGERPRINT_OUTER, &scene->first));
	set(scene, scene->ec, F_ec_cfp, address_of(frame(scene, 1)));
	assert_false(is_same_of(scene, FINGERPRINT_OUTER));
	/* The frames are the same, also if the word that says where the innermost one is were not there. */
	assert_true(take_of(scene, FINGERPRINT_ALL, &scene->second));
	assert_int_equal(scene->second.count, scene->first.count);
	scene->second.words[4] = scene->first.words[4];
	assert_memory_not_equal(scene->second.words, scene->first.words, scene->first.count * 8);
}

/* A block leads to the environment around it, on the stack or on the heap. */
static void test_environments_around(void **state)
{
	struct scene *scene = *state;
	uint64_t around[3] = {0x77, 0x88, LOCAL};

	ep_of(scene, 0)[0] = 1;
	ep_of(scene, 0)[-1] = address_of(ep_of(scene, 2)) | 1;
	assert_true(take(scene, &scene->first));
	ep_of(scene, 2)[-2] ^= 0x100;
	assert_false(is_same(scene));
	ep_of(scene, 2)[-2] ^= 0x100;
	ep_of(scene, 0)[-1] = address_of(around + 2);
	assert_false(is_same(scene));
	assert_true(take(scene, &scene->first));
	around[0]++; /* it is named by its address */
	assert_true(is_same(scene));
}

static void test_none(void **state)
{
	struct scene *scene = *state;

	/* Round and round. */
	ep_of(scene, 0)[0] = 1;
	ep_of(scene, 0)[-1] = address_of(ep_of(scene, 0));
	assert_false(take(scene, &scene->first));
	/* Where the control frames are, there is no environment. */
	ep_of(scene, 0)[-1] = address_of(frame(scene, 2));
	assert_false(take(scene, &scene->first));
	ep_of(scene, 0)[0] = LOCAL;
	assert_true(take(scene, &scene->first));
	/* A part of ZJIT's frames is on the native stack. */
	scene->layout->members[F_zjit_frame_pc].present = true;
	assert_true(take(scene, &scene->first));
	set(scene, frame(scene, 1), F_cfp_jit_return, 0x4000);
	assert_false(take(scene, &scene->first));
	scene->ruby.zjit = ZJIT_OFF;
	assert_true(take(scene, &scene->first));
	/* Until 2.2 a frame has its method entry, until 2.3 its flags. */
	scene->layout->members[F_cfp_flag].present = true;
	assert_false(take(scene, &scene->first));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_what_is_in_it, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_outer, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_environments_around, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_none, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
