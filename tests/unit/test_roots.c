/* The search for Ruby's roots among the variables of a module, and what tells that there is nothing to find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ruby/lifetime.h"
#include "ruby/roots.h"
#include "synthetic.h"
#include "target/live.h"

struct variables {
	struct synthetic *s;
	struct module_segment data;
	struct module module;
	struct mapping mapping;
	struct target target;
	uint64_t vm, symbols, object; /* where the roots are */
	uint64_t the_vm, thread, ec;
};

static struct variables v;

/* A Ruby whose roots lie among `before` other variables, and as many after them. */
static void make(struct synthetic *s, size_t before)
{
	uint64_t klass;

	v = (struct variables){.s = s};
	synthetic_name_id(s, '+', "+");
	synthetic_id(s, "name");
	klass = synthetic_class(s, E_RUBY_T_CLASS, "Object", true);
	v.the_vm = synthetic_struct(s, S_vm);
	v.thread = synthetic_struct(s, S_thread);
	v.ec = synthetic_struct(s, S_ec);
	synthetic_set(s, v.the_vm, F_vm_main_thread, v.thread);
	synthetic_set(s, v.thread, F_thread_vm, v.the_vm);
	synthetic_set(s, v.thread, F_thread_ec, v.ec);
	synthetic_set(s, v.ec, F_ec_thread_ptr, v.thread);

	v.data.start = synthetic_allocate(s, before * 8 + 8);
	v.object = synthetic_allocate(s, 8);
	v.vm = synthetic_allocate(s, 8);
	synthetic_put_word(s, v.object, klass);
	synthetic_put_word(s, v.vm, v.the_vm);
	/* The table that the fixture has, as it is. */
	v.symbols = synthetic_allocate(s, (size_t)s->layout->sizes[S_symbols].value);
	for (uint64_t i = 0; i < (uint64_t)s->layout->sizes[S_symbols].value; i += 8) {
		uint64_t word = 0;

		memcpy(&word, s->bytes + (s->ruby.symbols + i - SYNTHETIC_BASE), 8);
		synthetic_put_word(s, v.symbols + i, word);
	}
	v.data.end = synthetic_allocate(s, before * 8 + 8) + before * 8 + 8;
	v.module = (struct module){.target = &v.target, .fd = -1, .data = &v.data, .nr_data = 1, .whole = v.data};
	v.mapping = (struct mapping){.start = SYNTHETIC_BASE, .end = SYNTHETIC_BASE + SYNTHETIC_SIZE};
	v.target = (struct target){.operations = &live_operations, .mappings = &v.mapping, .nr_mappings = 1};
}

static struct roots search(void)
{
	struct roots roots = {0};

	roots_search(&v.module, v.s->ruby.memory, v.s->layout, &roots);
	return roots;
}

static void assert_all_found(void)
{
	struct roots roots = search();

	assert_int_equal(roots.current_vm, v.vm);
	assert_int_equal(roots.global_symbols, v.symbols);
	assert_int_equal(roots.object_class, v.object);
}

static void test_finds_all(void **state)
{
	make(*state, 100);
	assert_all_found();
}

static void test_finds_all_in_much(void **state)
{
	make(*state, 100000);
	assert_all_found();
}

/* Pointers to nothing, to code, to structs that do not agree with each other. */
static void test_decoys(void **state)
{
	struct synthetic *s = *state;
	uint64_t at, vm, thread;

	make(s, 4000);
	at = v.data.start;
	vm = synthetic_struct(s, S_vm);
	thread = synthetic_struct(s, S_thread);
	synthetic_set(s, vm, F_vm_main_thread, v.thread);
	synthetic_put_word(s, at, vm); /* the main thread is another VM's */
	vm = synthetic_struct(s, S_vm);
	synthetic_set(s, vm, F_vm_main_thread, thread);
	synthetic_set(s, thread, F_thread_vm, vm);
	synthetic_set(s, thread, F_thread_ec, v.ec);
	synthetic_put_word(s, at + 8, vm); /* its execution context is another thread's */
	synthetic_put_word(s, at + 16, synthetic_class(s, E_RUBY_T_CLASS, "Object", false));
	synthetic_put_word(s, at + 24, synthetic_class(s, E_RUBY_T_CLASS, "Objects", true));
	synthetic_put_word(s, at + 32, synthetic_class(s, E_RUBY_T_MODULE, "Object", true));
	for (uint64_t i = 5; i < 4000; i++)
		synthetic_put_word(s, at + i * 8, i % 3 ? at + i * 16 : SYNTHETIC_BASE + SYNTHETIC_SIZE + i * 0x10000);
	assert_all_found();
}

/* What a module's own code and constants hold is no VM, whatever it looks like. */
static void test_not_in_code(void **state)
{
	struct module_segment whole;

	make(*state, 100);
	whole = v.module.whole;
	v.module.whole = (struct module_segment){SYNTHETIC_BASE, whole.end};
	assert_int_equal(search().current_vm, 0);
}

static void test_pages_that_cannot_be_read(void **state)
{
	make(*state, 4000);
	synthetic_unmap(*state, v.data.start + MEMORY_PAGE);
	synthetic_unmap(*state, v.data.start + 3 * MEMORY_PAGE);
	assert_all_found();
}

static void test_nothing_to_find(void **state)
{
	struct synthetic *s = *state;
	struct roots roots;

	make(s, 100);
	synthetic_put_word(s, v.vm, 0);
	synthetic_set(s, v.symbols, F_symbols_ids, 0);
	synthetic_put_word(s, v.object, 0);
	roots = search();
	assert_false(roots_are_complete(&roots));
	assert_int_equal(roots.current_vm, 0);
	assert_int_equal(roots.global_symbols, 0);
	assert_int_equal(roots.object_class, 0);
}

/* More data than is searched: what lies behind is not found, and that is said. */
static void test_too_much_data(void **state)
{
	struct synthetic *s = *state;
	struct roots roots;

	make(s, 100);
	assert_false(search().cut);
	make(s, (size_t)3 << 20);
	roots = search();
	assert_true(roots.cut);
	assert_int_equal(roots.current_vm, 0);
}

/*
 * Until 2.1 the symbol table is a hash table. Data that looks like nothing but such, each with a list that has no end,
 * is not gone through for ever.
 */
static void test_tables_without_end(void **state)
{
	struct synthetic *s = *state;
	uint64_t table, bins, entry;
	struct timespec began;
	struct roots roots;

	make(s, 1 << 17);
	synthetic_without(s, F_symbols_ids);
	synthetic_with(s, F_symbols_id_str);
	synthetic_with(s, F_st_bins);
	synthetic_without(s, F_st_entries);
	table = synthetic_struct(s, S_st);
	bins = synthetic_allocate(s, 8);
	entry = synthetic_struct(s, S_st_entry);
	synthetic_set(s, table, F_st_num_bins, 1);
	synthetic_set(s, table, F_st_bins, bins);
	synthetic_put_word(s, bins, entry);
	synthetic_set(s, entry, F_st_entry_next, entry);
	for (uint64_t i = 0; i < 1 << 17; i++)
		synthetic_put_word(s, v.data.start + i * 8, table);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
	roots = search();
	assert_true(elapsed_by_ns(CLOCK_PROCESS_CPUTIME_ID, &began) < 40000000000L);
	assert_true(roots.cut);
	assert_int_equal(roots.global_symbols, 0);
	assert_int_equal(roots.current_vm, v.vm);
}

/* What a broken ELF file may say of its segments. */
static void test_hostile_segments(void **state)
{
	static const struct module_segment hostile[] = {
	    {0, UINT64_MAX},
	    {UINT64_MAX - 4096, UINT64_MAX},
	    {UINT64_MAX - 4, 4},
	    {SYNTHETIC_BASE + 4096, SYNTHETIC_BASE},
	    {SYNTHETIC_BASE, SYNTHETIC_BASE + (UINT64_C(1) << 46)},
	    {SYNTHETIC_BASE + 3, SYNTHETIC_BASE + 9},
	};

	make(*state, 100);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		v.data = hostile[i];
		search();
	}
}

static void test_only_what_is_not_known(void **state)
{
	struct roots roots = {.current_vm = 1, .global_symbols = 2, .object_class = 3};

	make(*state, 100);
	roots_search(&v.module, v.s->ruby.memory, v.s->layout, &roots);
	assert_int_equal(roots.current_vm, 1);
	assert_int_equal(roots.global_symbols, 2);
	assert_int_equal(roots.object_class, 3);
}

static void test_check_forgets_what_does_not_hold(void **state)
{
	struct roots roots;

	make(*state, 100);
	roots = (struct roots){.current_vm = v.vm, .global_symbols = v.symbols, .object_class = v.object};
	roots_check(&v.module, v.s->ruby.memory, v.s->layout, &roots);
	assert_int_equal(roots.current_vm, v.vm);
	assert_int_equal(roots.global_symbols, v.symbols);
	assert_int_equal(roots.object_class, v.object);
	roots = (struct roots){.current_vm = v.object, .global_symbols = v.vm, .object_class = v.symbols};
	roots_check(&v.module, v.s->ruby.memory, v.s->layout, &roots);
	assert_int_equal(roots.current_vm, 0);
	assert_int_equal(roots.global_symbols, 0);
	assert_int_equal(roots.object_class, 0);
}

/* ---- between start and end */

/* Links an empty ring of ractors, or threads: the head points to itself. */
static void make_empty_ring(struct synthetic *s, uint64_t object, enum layout_member_id head)
{
	uint64_t at = object + s->layout->members[head].offset;

	synthetic_put_word(s, at, at - s->layout->members[F_list_node_next].offset);
}

static enum lifetime lifetime(struct roots roots)
{
	struct ruby ruby = v.s->ruby;

	ruby.vm = v.the_vm;
	return lifetime_of(&ruby, &roots);
}

static void test_lifetime(void **state)
{
	struct synthetic *s = *state;
	uint64_t unset;

	make(s, 100);
	unset = synthetic_allocate(s, 8);
	synthetic_put_word(s, unset, 0);
	assert_int_equal(lifetime((struct roots){0}), LIFETIME_RUNNING);
	assert_int_equal(lifetime((struct roots){.object_class = v.object}), LIFETIME_RUNNING);
	assert_int_equal(lifetime((struct roots){.object_class = v.object, .late_class = v.object}), LIFETIME_RUNNING);
	assert_int_equal(lifetime((struct roots){.object_class = unset}), LIFETIME_STARTING);
	assert_int_equal(lifetime((struct roots){.object_class = v.object, .late_class = unset}), LIFETIME_STARTING);
	/* What cannot be read says nothing. */
	assert_int_equal(lifetime((struct roots){.late_class = SYNTHETIC_BASE + SYNTHETIC_SIZE}), LIFETIME_RUNNING);
	synthetic_put_word(s, unset, SYNTHETIC_BASE + SYNTHETIC_SIZE);
	assert_int_equal(lifetime((struct roots){.object_class = unset}), LIFETIME_ENDING);
}

static void test_ending_takes_two_signs(void **state)
{
	struct synthetic *s = *state;

	make(s, 100);
	synthetic_set(s, v.thread, F_thread_ec, 0);
	assert_int_equal(lifetime((struct roots){0}), LIFETIME_RUNNING);
	make_empty_ring(s, v.the_vm, F_vm_ractors);
	assert_int_equal(lifetime((struct roots){0}), LIFETIME_ENDING);
	synthetic_set(s, v.thread, F_thread_ec, v.ec);
	assert_int_equal(lifetime((struct roots){0}), LIFETIME_RUNNING);
	synthetic_set(s, v.the_vm, F_vm_main_thread, 0);
	assert_int_equal(lifetime((struct roots){0}), LIFETIME_ENDING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_finds_all, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_finds_all_in_much, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_decoys, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_not_in_code, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_pages_that_cannot_be_read, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_nothing_to_find, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_too_much_data, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_tables_without_end, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_hostile_segments, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_only_what_is_not_known, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_check_forgets_what_does_not_hold, synthetic_set_up,
					    synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_lifetime, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_ending_takes_two_signs, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
