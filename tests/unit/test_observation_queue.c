/* The queue between the thread that takes samples and the one that finds their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sampling/observation_queue.h"
#include "stack_scene.h"
#include "synthetic.h"
#include "target/live.h"

#define FRAMES 5u

/* For how many whole samples a buffer has room, so that an eighth of it is one. */
#define ROOM 7u

struct scene {
	struct synthetic *s;
	uint8_t thread[CONTEXT_BYTES], *context;
	struct stack_extent extent;
	struct sample sample;
	size_t length; /* of the packed sample */
};

/* Takes a sample; the innermost frame's pc is its number. */
static void take(struct scene *scene, uint64_t number)
{
	const struct layout *layout = scene->s->layout;

	memcpy(frame_of(layout, scene->context, FRAMES, 0) + layout->members[F_cfp_pc].offset, &number, 8);
	copy_stack(scene->sample.copy, &scene->extent, COPY_ONCE, COPY_COVERED);
	scene->sample.copied = true;
	scene->sample.ec = number;
	scene->length = sample_packed_length(&scene->sample, true);
}

static void begin(void **state, struct scene *scene)
{
	struct synthetic *s = *state;
	const struct target target = {.operations = &live_operations, .pid = getpid(), .memory_fd = -1};

	*scene = (struct scene){.s = s};
	scene->sample.copy = stack_copy_create(&s->ruby, &target);
	assert_non_null(scene->sample.copy);
	scene->context = new_context(s->layout, FRAMES);
	scene->extent.thread = (uint64_t)(uintptr_t)scene->thread;
	scene->extent.ec = (uint64_t)(uintptr_t)scene->context;
	enter_context(s->layout, scene->thread, scene->context);
	take(scene, 0);
}

static void end(struct scene *scene)
{
	free_context(scene->context);
	sample_clear(&scene->sample);
}

/* The size of a buffer in which samples with stacks can have so many bytes: an eighth is left to those without. */
static size_t buffer_for(size_t bytes)
{
	return bytes / 7 * 8 + 8;
}

static bool add(struct scene *scene, struct observation_queue *queue, uint64_t number)
{
	take(scene, number);
	return observation_queue_add(queue, &(struct observation){.sample = &scene->sample, .time_ns = number});
}

/* The next observation has the sample of that number, or has lost it. */
static void check_next(struct scene *scene, struct observation_queue *queue, uint64_t number, bool lost)
{
	const struct observation *seen = observation_queue_next(queue, NULL, NULL);
	const struct layout *layout = scene->s->layout;
	const uint64_t frame = (uint64_t)(uintptr_t)frame_of(layout, scene->context, FRAMES, 0);
	uint64_t pc;

	assert_non_null(seen);
	assert_int_equal(seen->time_ns, number);
	assert_int_equal(seen->lost, lost);
	if (lost) {
		assert_null(seen->sample);
	} else {
		assert_int_equal(seen->sample->ec, number);
		memcpy(&pc, stack_copy_bytes(seen->sample->copy, frame + layout->members[F_cfp_pc].offset, 8), 8);
		assert_int_equal(pc, number);
		assert_int_equal(stack_copy_facts(seen->sample->copy)->cfp, frame);
		/* It is laid over a memory, too. */
		stack_copy_lay(seen->sample->copy, scene->s->ruby.memory);
		pc = 0;
		assert_true(memory_read(scene->s->ruby.memory, frame + layout->members[F_cfp_pc].offset, &pc, 8));
		assert_int_equal(pc, number);
		memory_overlay(scene->s->ruby.memory, NULL, 0, 0, 0);
	}
	observation_queue_done(queue);
}

/* As many as there is room for; what is lost is told, and what comes after it has room again. */
static void test_full(void **state)
{
	struct observation_queue *queue;
	struct scene scene;
	uint64_t number = 0;

	begin(state, &scene);
	queue = observation_queue_create(buffer_for(3 * scene.length + scene.length / 2), true);
	assert_non_null(queue);
	for (int i = 0; i < 50; i++) {
		const uint64_t first = number;

		for (; number < first + 3; number++)
			assert_true(add(&scene, queue, number));
		assert_false(add(&scene, queue, number++));
		for (uint64_t next = first; next < first + 3; next++)
			check_next(&scene, queue, next, false);
		check_next(&scene, queue, first + 3, true);
	}
	observation_queue_destroy(queue);
	end(&scene);
}

#define NATIVE_BYTES 1000u

/* Adds an observation with a copy of the native stack, each byte of which is the number. */
static bool add_native(struct scene *scene, struct observation_queue *queue, uint64_t number, enum cache_result result)
{
	static uint8_t bytes[NATIVE_BYTES];
	const size_t length = number % NATIVE_BYTES;
	size_t whole;

	take(scene, number);
	memset(bytes, (int)number, length);
	scene->sample.native = (struct native_copy){
	    .registers = {.ip = number, .known = 1}, .bytes = bytes, .length = length, .nr_functions = 1};
	scene->sample.cache.result = CACHE_MISS;
	whole = sample_packed_length(&scene->sample, true);
	scene->sample.cache.result = result;
	/* A stack that is known is not copied again. */
	assert_true(result == CACHE_MISS || sample_packed_length(&scene->sample, true) < whole);
	return observation_queue_add(queue, &(struct observation){.sample = &scene->sample, .time_ns = number});
}

static void check_native(struct scene *scene, struct observation_queue *queue, uint64_t number, bool has_stack)
{
	const struct sample *sample = observation_queue_next(queue, NULL, NULL)->sample;

	assert_non_null(sample);
	assert_int_equal(sample->native.registers.ip, number);
	assert_int_equal(sample->native.length, number % NATIVE_BYTES);
	assert_int_equal(sample->native.nr_functions, 0);
	for (size_t i = 0; i < sample->native.length; i++)
		assert_int_equal(sample->native.bytes[i], (uint8_t)number);
	if (has_stack)
		check_next(scene, queue, number, false);
	else
		observation_queue_done(queue);
}

/* The native stack goes with the sample, also of a stack that is cached, and around the end of the buffer. */
static void test_native(void **state)
{
	struct observation_queue *queue;
	struct scene scene;

	begin(state, &scene);
	queue = observation_queue_create(buffer_for(6 * scene.length + 6 * NATIVE_BYTES), true);
	assert_non_null(queue);
	for (uint64_t number = 0; number < 2000; number++) {
		assert_true(add_native(&scene, queue, number, number % 3 == 0 ? CACHE_HIT : CACHE_MISS));
		if (number >= 3)
			check_native(&scene, queue, number - 3, number % 3 != 0);
	}
	observation_queue_destroy(queue);
	end(&scene);
}

/* If there is no room for the native stack of a cached stack, the stack itself is not lost. */
static void test_native_of_cached(void **state)
{
	struct observation_queue *queue;
	const struct observation *seen;
	struct scene scene;

	begin(state, &scene);
	queue = observation_queue_create(buffer_for(scene.length + NATIVE_BYTES / 2), true);
	assert_non_null(queue);
	assert_true(add(&scene, queue, 1));
	assert_false(add_native(&scene, queue, NATIVE_BYTES - 1, CACHE_HIT));
	check_next(&scene, queue, 1, false);
	seen = observation_queue_next(queue, NULL, NULL);
	assert_int_equal(seen->time_ns, NATIVE_BYTES - 1);
	assert_null(seen->sample);
	assert_false(seen->lost);
	observation_queue_done(queue);
	observation_queue_destroy(queue);
	end(&scene);
}

/* Around the end of the buffer, with samples always in it. */
static void test_around(void **state)
{
	struct observation_queue *queue;
	struct scene scene;
	uint64_t next = 0;

	begin(state, &scene);
	queue = observation_queue_create(buffer_for(5 * scene.length + scene.length / 3), true);
	assert_non_null(queue);
	for (uint64_t number = 0; number < 1000; number++) {
		assert_true(add(&scene, queue, number));
		if (number % 7 != 0 && number >= 2)
			for (; next + 1 < number; next++)
				check_next(&scene, queue, next, false);
	}
	observation_queue_end(queue);
	for (; next < 1000; next++)
		check_next(&scene, queue, next, false);
	assert_null(observation_queue_next(queue, NULL, NULL));
	observation_queue_destroy(queue);
	end(&scene);
}

static void check_reason(struct observation_queue *queue, enum reason reason)
{
	const struct observation *seen = observation_queue_next(queue, NULL, NULL);

	assert_non_null(seen);
	assert_non_null(seen->sample);
	assert_int_equal(seen->sample->reason, reason);
	observation_queue_done(queue);
}

/*
 * Observations without a sample need no room in the buffer. A sample without a stack needs little, and finds room where
 * one with a stack does not; also if no stack was ever copied.
 */
static void test_without_stack(void **state)
{
	struct sample never = {.reason = REASON_REFUSED};
	struct observation_queue *queue;
	struct scene scene;

	begin(state, &scene);
	never.copy =
	    stack_copy_create(&scene.s->ruby, &(struct target){.operations = &live_operations, .pid = getpid()});
	assert_non_null(never.copy);
	/* The eighth has room for one without a stack. */
	queue = observation_queue_create(buffer_for(ROOM * scene.length), true);
	assert_non_null(queue);
	for (uint64_t number = 0; number < ROOM; number++)
		assert_true(add(&scene, queue, number));
	assert_true(observation_queue_add(queue, &(struct observation){.time_ns = 2, .same = true}));
	assert_false(add(&scene, queue, 3));
	scene.sample.copied = false;
	scene.sample.reason = REASON_NOT_STOPPED;
	assert_true(sample_packed_length(&scene.sample, true) < scene.length);
	assert_true(observation_queue_add(queue, &(struct observation){.sample = &scene.sample}));
	for (uint64_t number = 0; number < ROOM; number++)
		check_next(&scene, queue, number, false);
	assert_true(observation_queue_next(queue, NULL, NULL)->same);
	observation_queue_done(queue);
	check_next(&scene, queue, 3, true);
	check_reason(queue, REASON_NOT_STOPPED);
	assert_true(observation_queue_add(queue, &(struct observation){.sample = &never}));
	check_reason(queue, REASON_REFUSED);
	observation_queue_destroy(queue);
	sample_clear(&never);
	end(&scene);
}

/*
 * Without room for its sample, an optional observation is left out. One that is larger than the buffer never has room.
 */
static void test_optional(void **state)
{
	struct observation_queue *queue;
	struct scene scene;

	begin(state, &scene);
	queue = observation_queue_create(buffer_for(scene.length), true);
	assert_non_null(queue);
	assert_true(add(&scene, queue, 1));
	take(&scene, 2);
	assert_false(observation_queue_add(queue, &(struct observation){.sample = &scene.sample, .optional = true}));
	check_next(&scene, queue, 1, false);
	observation_queue_end(queue);
	assert_null(observation_queue_next(queue, NULL, NULL));
	observation_queue_destroy(queue);
	queue = observation_queue_create(scene.length, true);
	assert_non_null(queue);
	assert_false(add(&scene, queue, 3));
	check_next(&scene, queue, 3, true);
	observation_queue_destroy(queue);
	end(&scene);
}

/* A stack that was walked need not be packed: its frames are. */
static void test_walked(void **state)
{
	struct frame frames[] = {{.cfp = 1, .pc = 7, .kind = FRAME_RUBY}, {.cfp = 2, .pc = 8, .kind = FRAME_CFUNC}};
	const struct stack walked = {.ec = 5, .frames = frames, .nr_frames = 2};
	struct observation_queue *queue;
	const struct sample *sample;
	struct scene scene;
	uint64_t frame, pc;

	begin(state, &scene);
	scene.sample.walked = &walked;
	take(&scene, 1);
	assert_true(sample_packed_length(&scene.sample, false) < scene.length - FRAMES * 8);
	queue = observation_queue_create(2 * scene.length, false);
	assert_non_null(queue);
	assert_true(observation_queue_add(queue, &(struct observation){.sample = &scene.sample}));
	sample = observation_queue_next(queue, NULL, NULL)->sample;
	frames[0].pc = 9;
	assert_int_equal(sample->walked->nr_frames, 2);
	assert_int_equal(sample->walked->frames[0].pc, 7);
	assert_int_equal(sample->walked->frames[1].pc, 8);
	frame = (uint64_t)(uintptr_t)frame_of(scene.s->layout, scene.context, FRAMES, 0);
	assert_null(stack_copy_bytes(sample->copy, frame, 8));
	assert_non_null(
	    stack_copy_bytes(sample->copy, scene.extent.ec + scene.s->layout->members[F_ec_thread_ptr].offset, 8));
	/* The stack is not read from elsewhere, either. */
	stack_copy_lay(sample->copy, scene.s->ruby.memory);
	assert_false(memory_read(scene.s->ruby.memory, frame, &pc, 8));
	memory_overlay(scene.s->ruby.memory, NULL, 0, 0, 0);
	observation_queue_done(queue);
	observation_queue_destroy(queue);
	scene.sample.walked = NULL;
	end(&scene);
}

/* A thread that is asked for is told once, and until then as often as others are asked for. */
static void test_asks(void **state)
{
	struct observation_queue *queue = observation_queue_create(4096, true);

	(void)state;
	assert_non_null(queue);
	assert_false(observation_queue_asks_any(queue));
	assert_false(observation_queue_asks(queue, 0x1000));
	observation_queue_ask(queue, 0x1000);
	observation_queue_ask(queue, 0x2000);
	assert_true(observation_queue_asks_any(queue));
	assert_false(observation_queue_asks_any(queue));
	assert_false(observation_queue_asks(queue, 0x3000));
	assert_true(observation_queue_asks(queue, 0x2000));
	assert_false(observation_queue_asks(queue, 0x2000));
	assert_true(observation_queue_asks(queue, 0x1000));
	observation_queue_destroy(queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_full, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_native, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_native_of_cached, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_around, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_without_stack, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_optional, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_walked, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test(test_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
