#include "synthetic_fibers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct scene scene;

uint64_t new_fiber(uint64_t thread, enum layout_enumerator_id status, bool pooled)
{
	struct synthetic *s = scene.s;
	const struct layout_member *member = &s->layout->members[F_fiber_ec];
	uint64_t fiber = synthetic_struct(s, S_fiber), ec = fiber + member->offset;
	uint64_t link = synthetic_struct(s, S_jit_cont);

	synthetic_set(s, ec, F_ec_fiber_ptr, fiber);
	synthetic_set(s, ec, F_ec_thread_ptr, thread);
	synthetic_set(s, ec, F_ec_vm_stack, synthetic_allocate(s, 64));
	synthetic_set(s, fiber, F_fiber_status, synthetic_enum(s, status));
	synthetic_set(s, fiber, F_fiber_jit_cont, link);
	if (pooled) {
		synthetic_set(s, fiber, F_fiber_stack_pool, scene.pool);
		synthetic_set(s, fiber, F_fiber_stack_base, synthetic_allocate(s, 8));
	}
	synthetic_set(s, link, F_jit_cont_ec, ec);
	synthetic_set(s, link, F_jit_cont_next, scene.newest);
	if (scene.newest)
		synthetic_set(s, scene.newest, F_jit_cont_prev, link);
	scene.newest = link;
	return fiber;
}

int set_up_fibers(void **state)
{
	struct synthetic *s;
	struct layout_member *ec;

	synthetic_set_up(state);
	s = *state;
	scene = (struct scene){.s = s, .threads = {.threads = scene.of, .count = 2}};
	s->ruby.vm = synthetic_struct(s, S_vm);
	/* The execution context is in the fiber, behind everything else. */
	ec = &s->layout->members[F_fiber_ec];
	ec->offset = (uint32_t)s->layout->sizes[S_fiber].value;
	s->layout->sizes[S_fiber].value += s->layout->sizes[S_ec].value;
	scene.pool = synthetic_struct(s, S_fiber_pool);
	for (size_t i = 0; i < 2; i++) {
		uint64_t thread = synthetic_struct(s, S_thread);

		synthetic_set(s, thread, F_thread_vm, s->ruby.vm);
		scene.of[i].address = thread;
		scene.of[i].fiber = new_fiber(thread, E_FIBER_RESUMED, false);
	}
	return 0;
}

struct ruby_fibers list_fibers(void)
{
	struct ruby_fibers fibers;

	assert_true(fibers_list(&scene.s->ruby, &scene.threads, &scene.found, &fibers));
	return fibers;
}

void assert_fibers(const uint64_t *expected, size_t count, enum list_missing missing)
{
	struct ruby_fibers fibers = list_fibers();

	assert_int_equal(fibers.missing, missing);
	assert_int_equal(fibers.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(fibers.fibers[i].address, expected[i]);
	fibers_clear(&fibers);
	assert_null(fibers.fibers);
}

void set_used(uint64_t used)
{
	synthetic_set(scene.s, scene.pool, F_fiber_pool_used, used);
}
