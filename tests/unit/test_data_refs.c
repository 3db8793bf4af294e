/*
 * The references of T_DATA of Ruby itself: those that are given, members that a Ruby lacks, and structs that lie, or are
 * not there.
 */
#include "ruby/data_refs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "synthetic.h"

/* An address that can be that of an object. Nothing reads it. */
#define OBJECT(number) (SYNTHETIC_BASE + 8 * ((number) + 1))

#define STEPS 100000u

/* What one walk has given. */
struct given {
	struct object_ref refs[256];
	size_t count;
	bool all;
};

static void note(void *context, const struct object_ref *ref)
{
	struct given *given = context;

	if (given->count < sizeof(given->refs) / sizeof(given->refs[0]))
		given->refs[given->count] = *ref;
	given->count++;
}

static struct object_slot slot_of(const struct synthetic *s, uint64_t object)
{
	return (struct object_slot){object, s->bytes + (object - SYNTHETIC_BASE),
				    (uint64_t)s->layout->sizes[S_typed_data].value};
}

static struct given refs_in(struct synthetic *s, uint64_t object, uint64_t steps)
{
	static struct object_refs refs;
	const struct object_slot slot = slot_of(s, object);
	struct given given = {.count = 0};
	struct access access = ruby_access(&s->ruby);
	struct refs_walk walk = {&refs, &access, &slot, slot_flags(s->layout, &slot), note, &given, steps};

	refs = (struct object_refs){.layout = s->layout};
	assert_true(ivars_read(&s->ruby, &refs.ivars));
	given.all = data_refs(&walk);
	assert_true(walk.steps <= steps);
	ivars_clear(&refs.ivars);
	return given;
}

static struct given refs_of(struct synthetic *s, uint64_t object)
{
	return refs_in(s, object, STEPS);
}

static size_t times(const struct given *given, uint64_t target, enum ref_label label, enum ref_certainty certainty)
{
	size_t ret = 0;

	for (size_t i = 0; i < given->count; i++)
		ret += given->refs[i].target == target && given->refs[i].label == label &&
		       given->refs[i].certainty == certainty;
	return ret;
}

static bool has_part(const struct given *given, uint64_t target, const char *name)
{
	for (size_t i = 0; i < given->count; i++)
		if (given->refs[i].target == target && given->refs[i].label == REF_PART &&
		    strcmp((const char *)(uintptr_t)given->refs[i].name, name) == 0)
			return true;
	return false;
}

static bool leads_to(const struct given *given, uint64_t target)
{
	for (size_t i = 0; i < given->count; i++)
		if (given->refs[i].target == target)
			return true;
	return false;
}

/* A T_DATA whose type has this name, and marks. */
static uint64_t new_data(struct synthetic *s, const char *type_name, uint64_t data)
{
	const uint64_t object = synthetic_object(
	    s, S_typed_data, synthetic_enum(s, E_RUBY_T_DATA) | synthetic_enum(s, E_RUBY_TYPED_FL_IS_TYPED_DATA));
	const uint64_t type = synthetic_struct(s, S_data_type), name = synthetic_allocate(s, 64);

	synthetic_put(s, name, type_name, strlen(type_name) + 1);
	synthetic_set(s, type, F_data_type_name, name);
	synthetic_set(s, type, F_data_type_dmark, 1);
	synthetic_set(s, object, F_typed_data_type, type);
	synthetic_set(s, object, F_typed_data_data, data);
	return object;
}

static void test_queues(void **state)
{
	static const char *const names[] = {"queue", "Thread::Queue", "sized_queue", "Thread::SizedQueue"};
	struct synthetic *s = *state;
	const uint64_t queue = synthetic_struct(s, S_queue);
	struct given given;

	synthetic_set(s, queue, F_queue_que, OBJECT(1));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		given = refs_of(s, new_data(s, names[i], queue));
		assert_true(given.all);
		assert_int_equal(given.count, 1);
		assert_true(has_part(&given, OBJECT(1), "elements"));
	}
	/* Another type, and one whose name is not there: nothing is known of their words. */
	given = refs_of(s, new_data(s, "Thread::Queues", queue));
	assert_false(given.all);
	assert_int_equal(times(&given, OBJECT(1), REF_DATA, REF_CONSERVATIVE), 1);
	given = refs_of(s, new_data(s, "queue", NOWHERE));
	assert_false(given.all);
	assert_int_equal(given.count, 0);
	synthetic_without(s, F_queue_que);
	given = refs_of(s, new_data(s, "queue", queue));
	assert_false(given.all);
	assert_int_equal(times(&given, OBJECT(1), REF_DATA, REF_CONSERVATIVE), 1);
}

/* The name of a type ends where the memory ends. */
static void test_name_at_the_end(void **state)
{
	struct synthetic *s = *state;
	const uint64_t queue = synthetic_struct(s, S_queue), object = new_data(s, "x", queue), page = 4096;
	struct access access = ruby_access(&s->ruby);
	const uint64_t type = access_member(&access, object, F_typed_data_type);
	const uint64_t end = (synthetic_allocate(s, 2 * page) + page) / page * page;

	synthetic_put(s, end - 6, "queue", 6);
	synthetic_unmap(s, end);
	synthetic_set(s, type, F_data_type_name, end - 6);
	assert_true(refs_of(s, object).all);
	synthetic_set(s, type, F_data_type_name, end - 5);
	assert_false(refs_of(s, object).all);
}

/* Many structs have the address of their object. It keeps nothing alive. */
static void test_itself(void **state)
{
	struct synthetic *s = *state;
	const uint64_t data = synthetic_allocate(s, 64 * 8), object = new_data(s, "other", data);
	struct given given;

	synthetic_put_word(s, data, object);
	synthetic_put_word(s, data + 8, OBJECT(2));
	given = refs_of(s, object);
	assert_true(leads_to(&given, OBJECT(2)));
	assert_false(leads_to(&given, object));
}

static void test_code(void **state)
{
	struct synthetic *s = *state;
	const uint64_t code = synthetic_code(s, E_ISEQ_TYPE_METHOD, "m"), pointer = synthetic_allocate(s, 64 * 8);
	const uint64_t direct = new_data(s, "T_IMEMO/iseq", code), indirect = new_data(s, "T_IMEMO/iseq", pointer);
	struct given given;

	synthetic_put_word(s, pointer, code);
	synthetic_set(s, code, F_iseq_wrapper, direct);
	given = refs_of(s, direct);
	assert_true(given.all && given.count == 1);
	assert_int_equal(times(&given, code, REF_CODE, REF_EXACT), 1);
	/* The code of another object. */
	given = refs_of(s, indirect);
	assert_false(given.all);
	assert_int_equal(times(&given, code, REF_CODE, REF_EXACT), 0);
	synthetic_set(s, code, F_iseq_wrapper, indirect);
	given = refs_of(s, indirect);
	assert_true(given.all && given.count == 1);
	assert_int_equal(times(&given, code, REF_CODE, REF_EXACT), 1);
	synthetic_without(s, F_iseq_wrapper);
	assert_false(refs_of(s, indirect).all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_queues, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_name_at_the_end, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_itself, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_code, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
