/* Old objects of this process's own memory: which are kept, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampling/old_objects.h"
#include "sampling/stack_objects.h"
#include "stack_scene.h"
#include "synthetic.h"
#include "target/live.h"

#define FRAMES	     3u
#define OBJECT_BYTES 512u

struct scene {
	const struct layout *layout;
	struct stack_copy *copy;
	struct old_objects *old;
	uint8_t thread[CONTEXT_BYTES], *context;
	struct stack_extent extent;
	_Alignas(8) uint8_t objects[FRAMES][OBJECT_BYTES]; /* the code of each frame */
	struct collections now;
};

static void put_flags(struct scene *scene, unsigned int object, uint64_t flags)
{
	memcpy(scene->objects[object] + scene->layout->members[F_basic_flags].offset, &flags, 8);
}

static void put_body(struct scene *scene, unsigned int object, uint64_t body)
{
	memcpy(scene->objects[object] + scene->layout->members[F_iseq_body].offset, &body, 8);
}

static void begin(struct synthetic *s, struct scene *scene)
{
	const struct target target = {.operations = &live_operations, .pid = getpid(), .memory_fd = -1};
	const uint64_t code = synthetic_enum(s, E_RUBY_T_IMEMO) | synthetic_enum(s, E_imemo_iseq)
								      << synthetic_enum(s, E_RUBY_FL_USHIFT);

	*scene = (struct scene){.layout = s->layout};
	scene->copy = stack_copy_create(&s->ruby, &target);
	scene->old = old_objects_create(s->layout);
	assert_non_null(scene->copy);
	assert_non_null(scene->old);
	scene->context = new_context(s->layout, FRAMES);
	scene->extent.thread = (uint64_t)(uintptr_t)scene->thread;
	scene->extent.ec = (uint64_t)(uintptr_t)scene->context;
	scene->now = (struct collections){.begun = 7, .majors = 3, .told = true, .tells_majors = true};
	enter_context(s->layout, scene->thread, scene->context);
	for (unsigned int i = 0; i < FRAMES; i++) {
		const uint64_t object = (uint64_t)(uintptr_t)scene->objects[i];

		memcpy(frame_of(s->layout, scene->context, FRAMES, i) + s->layout->members[F_cfp_iseq].offset, &object,
		       8);
		put_flags(scene, i, code);
		put_body(scene, i, 1000 + i);
	}
	/* The first two are old. */
	put_flags(scene, 0, code | synthetic_enum(s, E_RUBY_FL_PROMOTED));
	put_flags(scene, 1, code | synthetic_enum(s, E_RUBY_FL_PROMOTED));
}

static void end(struct scene *scene)
{
	free_context(scene->context);
	old_objects_destroy(scene->old);
	stack_copy_destroy(scene->copy);
}

/* Copies the stack with its objects at the moment `now`, and keeps what is old; the body of the code of a frame. */
static void copy_at(struct scene *scene)
{
	copy_stack(scene->copy, &scene->extent, COPY_ONCE, COPY_COVERED);
	old_objects_at(scene->old, &scene->now);
	old_objects_look(scene->old, scene->copy);
	stack_objects_copy(scene->copy, FRAMES, scene->old);
	old_objects_keep(scene->old, scene->copy, &scene->now, &scene->now);
}

static uint64_t body_in_copy(struct synthetic *s, const struct scene *scene, unsigned int object)
{
	uint64_t body = 0;

	stack_copy_lay(scene->copy, s->ruby.memory);
	assert_true(memory_read(s->ruby.memory,
				(uint64_t)(uintptr_t)scene->objects[object] + s->layout->members[F_iseq_body].offset,
				&body, 8));
	memory_overlay(s->ruby.memory, NULL, 0, 0, 0);
	return body;
}

/* Whether old objects, and young ones, are read anew after the state of the collector has become another one. */
static void check_next(struct synthetic *s, struct scene *scene, bool old, bool young)
{
	for (unsigned int i = 0; i < FRAMES; i++)
		put_body(scene, i, 2000 + i);
	copy_at(scene);
	assert_int_equal(body_in_copy(s, scene, 0), old ? 2000 : 1000);
	assert_int_equal(body_in_copy(s, scene, 1), old ? 2001 : 1001);
	assert_int_equal(body_in_copy(s, scene, 2), young ? 2002 : 1002);
	assert_true(stack_objects_are_all(scene->copy));
	assert_int_equal(stack_objects_are_read(scene->copy), old || young);
}

static void test_until_the_next_major(void **state)
{
	struct synthetic *s = *state;
	struct scene scene;

	begin(s, &scene);
	copy_at(&scene);
	check_next(s, &scene, false, true);
	scene.now.begun += 3;
	check_next(s, &scene, false, true);
	scene.now.majors++;
	check_next(s, &scene, true, true);
	end(&scene);
}

static void test_forgotten(void **state)
{
	struct synthetic *s = *state;
	struct scene scene;

	begin(s, &scene);
	copy_at(&scene);
	old_objects_forget(scene.old);
	check_next(s, &scene, true, true);
	end(&scene);
}

static void test_moved(void **state)
{
	struct synthetic *s = *state;
	struct scene scene;

	begin(s, &scene);
	copy_at(&scene);
	scene.now.compactions++;
	check_next(s, &scene, true, true);
	end(&scene);
}

/* Nothing is kept of a moment at which a collection marks, or is about to. */
static void test_not_kept(void **state)
{
	struct synthetic *s = *state;
	struct scene scene;

	for (int i = 0; i < 4; i++) {
		begin(s, &scene);
		scene.now.marking = i == 0;
		scene.now.beginning = i == 1;
		scene.now.compacting = i == 2;
		scene.now.tells_majors = i != 3;
		copy_at(&scene);
		scene.now = (struct collections){.begun = 7, .majors = 3, .told = true, .tells_majors = true};
		check_next(s, &scene, true, true);
		end(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_until_the_next_major, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_forgotten, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_moved, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_not_kept, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
