/* The roots of a synthetic heap, of a Ruby whose variables must be searched for, and lists that no Ruby has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ruby/heap_roots.h"
#include "synthetic_threads.h"

/* Variables of the file that contains Ruby, and entries of the table of global variables. */
enum { VARIABLES = 20, ENTRIES = 64, SEEN = 1000 };

/* More than what is bounded takes, sanitized and on a busy machine. */
#define MUCH_NS 10000000000L

static struct {
	struct synthetic *s;
	struct target target;
	struct module module;
	struct module_segment data;
	uint64_t variables, objspace, object, thread;
	struct data_files files;
	struct heap_roots roots;
	struct heap_root seen[SEEN];
	size_t nr_seen;
} scene;

static void read_pages(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	const struct synthetic *s = context;

	for (size_t i = 0; i < count; i++) {
		const uint64_t at = pages[i] - SYNTHETIC_BASE;

		ok[i] = at < SYNTHETIC_SIZE && s->mapped[at / MEMORY_PAGE];
		if (ok[i])
			memcpy(buffer + i * MEMORY_PAGE, s->bytes + at, MEMORY_PAGE);
	}
}

static int set_up(void **state)
{
	if (set_up_threads(state) != 0)
		return -1;
	memset(&scene, 0, sizeof(scene));
	scene.s = *state;
	synthetic_without(scene.s, F_vm_nr_global_objects);
	scene.variables = synthetic_allocate(scene.s, VARIABLES * 8);
	for (uint64_t i = 0; i < VARIABLES; i++)
		synthetic_put_word(scene.s, scene.variables + i * 8, 0);
	scene.data = (struct module_segment){scene.variables, scene.variables + VARIABLES * 8};
	scene.module = (struct module){
	    .target = &scene.target,
	    .fd = -1,
	    .data = &scene.data,
	    .nr_data = 1,
	    .whole = scene.data,
	};
	scene.objspace = synthetic_struct(scene.s, S_objspace);
	synthetic_set(scene.s, scene.s->ruby.vm, F_vm_objspace, scene.objspace);
	scene.thread = new_thread(scene.s, E_THREAD_STOPPED);
	one_ractor(scene.s, &scene.thread, 1);
	scene.object = synthetic_string(scene.s, "kept");
	return 0;
}

static int tear_down(void **state)
{
	heap_roots_clear(&scene.roots);
	return synthetic_tear_down(state);
}

static bool is_object(void *context, uint64_t address)
{
	(void)context;
	return address == scene.object;
}

static void see(void *context, const struct heap_root *root)
{
	(void)context;
	assert_true(scene.nr_seen < SEEN);
	assert_int_equal(root->target, scene.object);
	scene.seen[scene.nr_seen++] = *root;
}

/* Finds all roots. Returns whether these are all, but for those of fibers, which this Ruby does not list. */
static bool find(void)
{
	assert_true(heap_roots_read(&scene.s->ruby, &scene.module, &scene.files, read_pages, scene.s, 0, &scene.roots));
	scene.roots.incomplete = false;
	return heap_roots_each(&scene.roots, is_object, see, NULL);
}

static void assert_text(size_t index, const char *expected)
{
	struct text text = {0};

	assert_true(index < scene.nr_seen);
	heap_root_text(&scene.roots, &scene.seen[index], &text);
	assert_string_equal(text.data, expected);
	text_clear(&text);
}

/* A global variable. Returns its entry. */
static uint64_t global(uint64_t id, uint64_t data)
{
	const uint64_t entry = synthetic_struct(scene.s, S_global_entry);
	const uint64_t variable = synthetic_struct(scene.s, S_global_var);

	synthetic_set(scene.s, entry, F_global_entry_id, id);
	synthetic_set(scene.s, entry, F_global_entry_var, variable);
	synthetic_set(scene.s, variable, F_global_var_data, data);
	return entry;
}

/* The table of global variables: the first one is `data`. The seventh variable of Ruby points to it. Returns it. */
static uint64_t global_table(uint64_t data)
{
	const uint64_t table = synthetic_struct(scene.s, S_id_table);
	const uint64_t size = (uint64_t)scene.s->layout->sizes[S_id_item].value;
	const uint64_t items = synthetic_allocate(scene.s, ENTRIES * size);

	for (uint64_t i = 0; i < ENTRIES; i++) {
		const uint64_t id = synthetic_id(scene.s, i == 0 ? "$kept" : "$other");

		synthetic_set(scene.s, items + i * size, F_id_item_key,
			      id >> synthetic_enum(scene.s, E_RUBY_ID_SCOPE_SHIFT));
		synthetic_set(scene.s, items + i * size, F_id_item_val, global(id, i == 0 ? data : 0));
	}
	synthetic_set(scene.s, table, F_id_table_capa, ENTRIES);
	synthetic_set(scene.s, table, F_id_table_items, items);
	synthetic_put_word(scene.s, scene.variables + 6 * 8, table);
	return table;
}

static void test_value(void **state)
{
	(void)state;
	global_table(scene.object);
	assert_true(find());
	assert_int_equal(scene.roots.global_variables, scene.variables + 6 * 8);
	assert_int_equal(scene.nr_seen, 1);
	assert_text(0, "global variable $kept");
}

/* The global variable is a variable of C code. */
static void test_pointer(void **state)
{
	(void)state;
	synthetic_put_word(scene.s, scene.variables + 8 * 8, scene.object);
	global_table(scene.variables + 8 * 8);
	assert_true(find());
	assert_int_equal(scene.nr_seen, 1);
	assert_int_equal(scene.seen[0].word, scene.variables + 8 * 8);
	assert_text(0, "global variable $kept");
}

/* The table gets a size that no table has after it was found. */
static void test_endless_table(void **state)
{
	const uint64_t table = global_table(scene.object);

	(void)state;
	assert_true(heap_roots_read(&scene.s->ruby, &scene.module, &scene.files, read_pages, scene.s, 0, &scene.roots));
	synthetic_set(scene.s, table, F_id_table_capa, UINT64_MAX);
	assert_false(heap_roots_each(&scene.roots, is_object, see, NULL));
	assert_int_equal(scene.nr_seen, 0);
}

/* An element of the list of registered variables, before another one. */
static uint64_t registered(uint64_t variable, uint64_t next)
{
	const uint64_t link = synthetic_struct(scene.s, S_registered);

	synthetic_set(scene.s, link, F_registered_varptr, variable);
	synthetic_set(scene.s, link, F_registered_next, next);
	return link;
}

static void test_registered(void **state)
{
	const uint64_t memory = synthetic_allocate(scene.s, 8), other = synthetic_allocate(scene.s, 8);

	(void)state;
	global_table(0);
	synthetic_put_word(scene.s, memory, scene.object);
	synthetic_put_word(scene.s, other, scene.object + 8);
	synthetic_set(scene.s, scene.s->ruby.vm, F_vm_global_objects, registered(other, registered(memory, 0)));
	assert_true(find());
	assert_int_equal(scene.nr_seen, 1);
	assert_int_equal(scene.seen[0].kind, ROOT_REGISTERED);
	assert_int_equal(scene.seen[0].certainty, REF_EXACT);
	assert_int_equal(scene.seen[0].word, memory);
}

/* The list of registered variables leads into itself. */
static void test_circle(void **state)
{
	const uint64_t memory = synthetic_allocate(scene.s, 8), link = registered(memory, 0);
	struct timespec began;

	(void)state;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
	global_table(0);
	synthetic_put_word(scene.s, memory, 0);
	synthetic_set(scene.s, link, F_registered_next, link);
	synthetic_set(scene.s, scene.s->ruby.vm, F_vm_global_objects, link);
	assert_false(find());
	assert_true(elapsed_by_ns(CLOCK_PROCESS_CPUTIME_ID, &began) < MUCH_NS);
}

/* Members of structs that the layout names. */
static void test_members(void **state)
{
	(void)state;
	global_table(0);
	synthetic_set(scene.s, scene.s->ruby.vm, F_vm_load_path, scene.object);
	synthetic_set(scene.s, scene.thread, F_thread_value, scene.object);
	assert_true(find());
	assert_int_equal(scene.nr_seen, 2);
	assert_text(0, "value of thread 1");
	assert_text(1, "VM: load_path");
}

/* A word is read whole or not at all, and what cannot be read does not hide what is behind it. */
static void test_words(void **state)
{
	const uint64_t memory = synthetic_allocate(scene.s, 4 * MEMORY_PAGE),
		       page = (memory + MEMORY_PAGE) & -MEMORY_PAGE;
	struct word_scan scan;

	(void)state;
	for (uint64_t at = page; at < page + 2 * MEMORY_PAGE; at += 8)
		synthetic_put_word(scene.s, at, 0);
	global_table(0);
	assert_true(find());
	assert_true(word_scan_begin(read_pages, scene.s, UINT64_MAX, 0, &scan));
	assert_true(word_scan_each(&scan, page + 1, page + 2 * MEMORY_PAGE - 1, NULL, NULL));
	synthetic_unmap(scene.s, page);
	assert_false(word_scan_each(&scan, page, page + 2 * MEMORY_PAGE, NULL, NULL));
	scan.bytes_left = 0;
	assert_false(word_scan_each(&scan, page + MEMORY_PAGE, page + 2 * MEMORY_PAGE, NULL, NULL));
	word_scan_end(&scan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_value, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_pointer, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_endless_table, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_registered, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_circle, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_members, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_words, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
