/* How far the garbage collector has come: what a Ruby tells of it, and what follows of two moments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ruby/collections.h"
#include "synthetic.h"

static uint64_t give_vm(struct synthetic *s)
{
	uint64_t objspace = synthetic_struct(s, S_objspace);

	s->ruby.vm = synthetic_struct(s, S_vm);
	synthetic_set(s, s->ruby.vm, F_vm_objspace, objspace);
	return objspace;
}

static void test_read(void **state)
{
	struct synthetic *s = *state;
	uint64_t objspace = give_vm(s);
	struct collections read;

	synthetic_set(s, objspace, F_objspace_count, 7);
	synthetic_set(s, objspace, F_objspace_majors, 3);
	synthetic_set(s, objspace, F_objspace_compactions, 2);
	synthetic_set(s, objspace, F_objspace_during_compacting, 1);
	read = collections_read(&s->ruby);
	assert_int_equal(read.begun, 7);
	assert_int_equal(read.majors, 3);
	assert_int_equal(read.compactions, 2);
	assert_true(read.compacting);
}

/* Until 2.6 nothing is ever moved. */
static void test_no_compaction(void **state)
{
	struct synthetic *s = *state;
	uint64_t objspace = give_vm(s), start, end;
	struct collections read;

	synthetic_set(s, objspace, F_objspace_count, 7);
	synthetic_without(s, F_objspace_majors);
	synthetic_without(s, F_objspace_compactions);
	synthetic_without(s, F_objspace_during_compacting);
	synthetic_without(s, F_objspace_during_gc);
	read = collections_read(&s->ruby);
	assert_int_equal(read.begun, 7);
	assert_int_equal(read.compactions, 0);
	assert_false(read.compacting);
	assert_true(collections_range(&s->ruby, &start, &end));
	assert_int_equal(start, objspace + s->layout->members[F_objspace_count].offset);
	assert_int_equal(end, start + 8);
	synthetic_without(s, F_objspace_count);
	assert_false(collections_range(&s->ruby, &start, &end));
}

/* With another collector, what is where the state of Ruby's own would be is not taken for that. */
static void test_other_collector(void **state)
{
	struct synthetic *s = *state;
	uint64_t objspace = give_vm(s), range, object;

	assert_false(collections_are_of_other_gc(&s->ruby));
	object = synthetic_struct(s, S_basic);
	s->ruby.object_class = synthetic_struct(s, S_basic);
	synthetic_put_word(s, s->ruby.object_class, object);
	range = objspace + s->layout->members[F_objspace_range].offset;
	synthetic_put_word(s, range, object - 8);
	synthetic_put_word(s, range + 8, object + 8);
	assert_false(collections_are_of_other_gc(&s->ruby));
	synthetic_put_word(s, range + 8, object);
	assert_true(collections_are_of_other_gc(&s->ruby));
	s->layout->members[F_objspace_during_gc].shift = 5; /* as all Rubies have it */
	assert_true(collections_read(&s->ruby).told);
	s->ruby.other_gc = true;
	assert_false(collections_read(&s->ruby).told);
	assert_false(collections_read(&s->ruby).tells_majors);
}

static void test_unreadable(void **state)
{
	struct synthetic *s = *state;
	uint64_t start, end;
	struct collections read;

	give_vm(s);
	synthetic_set(s, s->ruby.vm, F_vm_objspace, NOWHERE);
	read = collections_read(&s->ruby);
	assert_int_equal(read.begun, 0);
	assert_int_equal(read.compactions, 0);
	assert_false(read.compacting);
	s->ruby.vm = NOWHERE;
	assert_false(collections_range(&s->ruby, &start, &end));
}

static void test_range(void **state)
{
	struct synthetic *s = *state;
	uint64_t objspace = give_vm(s), start, end;
	static const enum layout_member_id ids[] = {F_objspace_count, F_objspace_majors, F_objspace_compactions,
						    F_objspace_during_compacting};

	assert_true(collections_range(&s->ruby, &start, &end));
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		const struct layout_member *member = &s->layout->members[ids[i]];

		assert_in_range(objspace + member->offset, start, end - member->size);
	}
	/* A layout that has them anywhere: that is not copied with each stack. */
	s->layout->members[F_objspace_count].offset = UINT32_MAX - 8;
	assert_false(collections_range(&s->ruby, &start, &end));
}

static void test_between(void **state)
{
	const struct collections before = {.begun = 7, .compactions = 2};
	struct collections after = before;

	(void)state;
	assert_false(collections_moved_between(&before, &after));
	after.begun++;
	assert_false(collections_moved_between(&before, &after));
	after.compactions++;
	assert_true(collections_moved_between(&before, &after));
	/* 2.7 counts a compaction when it begins: then only its end tells that it is over. */
	after = before;
	after.compacting = true;
	assert_true(collections_moved_between(&before, &after));
	assert_true(collections_moved_between(&after, &before));
}

/* Through a layout for another release nothing is kept. */
static void test_doubted(void **state)
{
	struct synthetic *s = *state;
	const struct collections kept = {.begun = 7, .told = true};
	struct collections doubted = kept;

	doubted.doubted = true;
	assert_false(collections_same_objects(&kept, &doubted));
	assert_false(collections_same_objects(&doubted, &kept));
	assert_false(collections_same_objects(&doubted, &doubted));
	/* For what is read a moment later nothing better is known. */
	assert_true(collections_unchanged(&doubted, &doubted));
	give_vm(s);
	assert_false(collections_read(&s->ruby).doubted);
	s->ruby.borrowed = true;
	assert_true(collections_read(&s->ruby).doubted);
}

/* What was kept holds while nothing can have been freed or moved since. */
static void test_same_objects(void **state)
{
	const struct collections kept = {.begun = 7, .compactions = 2, .told = true};
	struct collections now = kept, begun = kept;

	(void)state;
	assert_true(collections_same_objects(&kept, &now));
	now.collecting = true;
	assert_true(collections_same_objects(&kept, &now));
	assert_true(collections_same_objects(&now, &kept));
	now.beginning = true;
	assert_true(collections_same_objects(&kept, &now));
	assert_false(collections_same_objects(&now, &kept)); /* kept before a collection that has begun marks */
	assert_true(collections_unchanged(&now, &now));
	assert_true(collections_unchanged(&kept, &now));
	assert_false(collections_unchanged(&now, &kept));
	begun.begun++;
	assert_false(collections_same_objects(&kept, &begun));
	assert_false(collections_unchanged(&kept, &begun));
	now = kept;
	now.marking = true;
	assert_false(collections_same_objects(&kept, &now));
	assert_false(collections_same_objects(&now, &kept)); /* what was not marked by then is freed */
	assert_true(collections_same_objects(&now, &now));
	now = kept;
	now.compacting = true;
	assert_false(collections_same_objects(&kept, &now));
	now = kept;
	now.told = false;
	assert_false(collections_same_objects(&now, &now));
}

/* A collection of young objects frees no old one, and moves none. */
static void test_same_old_objects(void **state)
{
	struct synthetic *s = *state;
	const struct collections kept = {.begun = 7, .majors = 3, .compactions = 2, .told = true, .tells_majors = true};
	struct collections now = kept, then = kept;
	const uint64_t old = synthetic_enum(s, E_RUBY_FL_PROMOTED);

	now.begun = 9;
	assert_true(collections_same_old_objects(&kept, &now));
	now.collecting = now.beginning = true;
	assert_true(collections_same_old_objects(&kept, &now));
	now.beginning = false;
	now.marking = true;
	assert_true(collections_same_old_objects(&kept, &now));
	/* A collection of old objects that marks is counted, but may still free what was reachable while it marked. */
	then.marking = true;
	assert_false(collections_same_old_objects(&then, &kept));
	then = kept;
	then.beginning = true;
	assert_false(collections_same_old_objects(&then, &kept));
	now = kept;
	now.majors++;
	assert_false(collections_same_old_objects(&kept, &now));
	now = kept;
	now.compactions++;
	assert_false(collections_same_old_objects(&kept, &now));
	now = kept;
	now.doubted = true;
	assert_false(collections_same_old_objects(&kept, &now));
	now = kept;
	now.tells_majors = false;
	assert_false(collections_same_old_objects(&kept, &now));
	assert_false(collections_same_old_objects(&now, &kept));

	assert_true(collections_is_old(s->layout, old | 1));
	assert_false(collections_is_old(s->layout, old & (old - 1)));
	assert_false(collections_is_old(s->layout, 1));
	s->layout->enumerators[E_RUBY_FL_PROMOTED] = (struct layout_number){0};
	assert_false(collections_is_old(s->layout, old));
}

/* The mode lies in the byte of during_gc. */
static void test_marking(void **state)
{
	static const struct {
		uint8_t flags;
		bool marking, collecting, beginning;
	} cases[] = {
	    {0x00, false, false, false}, {0x01, true, false, false}, {0x02, false, false, false},
	    {0x21, true, true, false},	 {0x3d, true, true, false},  {0x22, false, true, false},
	    {0x20, false, true, true},	 {0x3c, false, true, true},
	};
	struct synthetic *s = *state;
	uint64_t objspace = give_vm(s);
	struct layout_member *collecting = &s->layout->members[F_objspace_during_gc];

	*collecting = (struct layout_member){.present = true, .offset = 16, .size = 1, .shift = 5, .width = 1};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct collections read;

		synthetic_put(s, objspace + 16, &cases[i].flags, 1);
		read = collections_read(&s->ruby);
		assert_true(read.told);
		assert_int_equal(read.marking, cases[i].marking);
		assert_int_equal(read.collecting, cases[i].collecting);
		assert_int_equal(read.beginning, cases[i].beginning);
	}
	collecting->shift = 4;
	assert_false(collections_read(&s->ruby).told);
	collecting->shift = 5;
	synthetic_without(s, F_objspace_count);
	assert_false(collections_read(&s->ruby).told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_read, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_doubted, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_compaction, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_other_collector, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_unreadable, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_range, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test(test_between),
	    cmocka_unit_test(test_same_objects),
	    cmocka_unit_test_setup_teardown(test_same_old_objects, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_marking, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
