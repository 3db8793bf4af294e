/* The records of where objects were allocated: what is found, what is refused, and memory that is random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "heap/allocation_sites.h"
#include "synthetic.h"

enum { SLOT = 512, OBJECTS = 8, VARIABLES = 16, INFO_WORDS = 8, ROUNDS = 300, WORDS = 4096 };
enum { LIVING, FLAGS, KLASS, PATH, LINE, CLASS_PATH, METHOD, GENERATION };

static struct {
	struct synthetic *s;
	struct slots *slots;
	uint64_t objects, tracer, variables, infos[OBJECTS], table, texts, path, other_path, class_path;
	struct data_file file;
	struct data_range range;
	struct data_files files;
	struct heap_walk walk;
	struct allocation_sites *sites;
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

static uint64_t object(size_t index)
{
	return scene.objects + index * SLOT;
}

static uint64_t zeros(size_t words)
{
	const uint64_t at = synthetic_allocate(scene.s, words * 8);

	for (size_t i = 0; i < words; i++)
		synthetic_put_word(scene.s, at + i * 8, 0);
	return at;
}

static uint64_t c_string(const char *text)
{
	const uint64_t at = synthetic_allocate(scene.s, strlen(text) + 1);

	synthetic_put(scene.s, at, text, strlen(text) + 1);
	return at;
}

/* The first object becomes a T_DATA with a type of that name. */
static void make_data(const char *name)
{
	const uint64_t type = synthetic_struct(scene.s, S_data_type);

	synthetic_set(scene.s, type, F_data_type_name, c_string(name));
	synthetic_set(scene.s, object(0), F_basic_flags,
		      synthetic_enum(scene.s, E_RUBY_T_DATA) | synthetic_enum(scene.s, E_RUBY_TYPED_FL_IS_TYPED_DATA));
	synthetic_set(scene.s, object(0), F_typed_data_type, type);
}

static uint64_t make_table(const uint64_t (*entries)[2], size_t count)
{
	const uint64_t table = synthetic_struct(scene.s, S_st);
	const uint64_t size = (uint64_t)scene.s->layout->sizes[S_st_entry].value;
	const uint64_t at = synthetic_allocate(scene.s, count * size);

	synthetic_set(scene.s, table, F_st_entries, at);
	synthetic_set(scene.s, table, F_st_entries_bound, count);
	synthetic_set(scene.s, table, F_st_entry_power, 10);
	synthetic_set(scene.s, table, F_st_num_entries, count);
	for (size_t i = 0; i < count; i++) {
		synthetic_set(scene.s, at + i * size, F_st_entry_hash, i);
		synthetic_set(scene.s, at + i * size, F_st_entry_key, entries[i][0]);
		synthetic_set(scene.s, at + i * size, F_st_entry_record, entries[i][1]);
	}
	return table;
}

static void put_info(size_t index, size_t word, uint64_t value)
{
	synthetic_put_word(scene.s, scene.infos[index] + word * 8, value);
}

static uint64_t symbol(const char *name)
{
	return synthetic_id(scene.s, name) << synthetic_enum(scene.s, E_RUBY_SPECIAL_SHIFT) |
	       synthetic_enum(scene.s, E_RUBY_SYMBOL_FLAG);
}

static void make_records(void)
{
	uint64_t of_objects[OBJECTS][2];

	for (size_t i = 0; i < OBJECTS; i++) {
		scene.infos[i] = zeros(INFO_WORDS);
		/* Not in the order of their addresses. */
		of_objects[i][0] = object(OBJECTS - 1 - i);
		put_info(i, LIVING, UINT64_C(0xa5a5a5a500000001));
		put_info(i, FLAGS, synthetic_enum(scene.s, i == 0 ? E_RUBY_T_DATA : E_RUBY_T_STRING));
		put_info(i, PATH, i % 2 ? scene.path : scene.other_path);
		put_info(i, LINE, i);
		put_info(i, CLASS_PATH, scene.class_path);
		put_info(i, METHOD, symbol("build"));
		put_info(i, GENERATION, i + 1);
		if (i > 0)
			synthetic_set(scene.s, object(i), F_basic_flags, synthetic_enum(scene.s, E_RUBY_T_STRING));
	}
	for (size_t i = 0; i < OBJECTS; i++)
		of_objects[i][1] = scene.infos[OBJECTS - 1 - i];
	scene.table = make_table(of_objects, OBJECTS);
	scene.texts =
	    make_table((const uint64_t[][2]){{scene.path, 3}, {scene.class_path, 1}, {scene.other_path, 2}}, 3);
}

static void make_tracer(void)
{
	const uint64_t words[] = {1, object(0), object(0), scene.table, scene.texts, 0};

	scene.tracer = synthetic_allocate(scene.s, sizeof(words));
	synthetic_put(scene.s, scene.tracer, words, sizeof(words));
	synthetic_put_word(scene.s, scene.variables + 5 * 8, scene.tracer);
}

static int set_up(void **state)
{
	static char path[] = "/usr/lib/ruby/objspace.so";
	uint64_t vm, objspace;

	if (synthetic_set_up(state) != 0)
		return -1;
	memset(&scene, 0, sizeof(scene));
	scene.s = *state;
	scene.objects = zeros((size_t)OBJECTS * SLOT / 8);
	scene.slots = slots_create(&(struct heap_page){.start = scene.objects, .slots = OBJECTS, .slot_size = SLOT}, 1);
	assert_non_null(scene.slots);
	scene.variables = zeros(VARIABLES);
	scene.path = c_string("/app/shop.rb");
	scene.other_path = c_string("a\xff.rb");
	scene.class_path = c_string("Shop");
	make_data("tracepoint");
	make_records();
	make_tracer();
	vm = synthetic_struct(scene.s, S_vm);
	objspace = synthetic_struct(scene.s, S_objspace);
	synthetic_set(scene.s, vm, F_vm_objspace, objspace);
	synthetic_set(scene.s, objspace, F_objspace_count, OBJECTS);
	scene.s->ruby.vm = vm;
	scene.file = (struct data_file){.path = path};
	scene.range = (struct data_range){scene.variables, scene.variables + VARIABLES * 8, 0};
	scene.files = (struct data_files){.files = &scene.file, .nr_files = 1, .ranges = &scene.range, .nr_ranges = 1};
	scene.walk = (struct heap_walk){
	    .ruby = &scene.s->ruby,
	    .source = read_pages,
	    .context = scene.s,
	    .lasting = scene.s->ruby,
	    .slots = scene.slots,
	};
	return 0;
}

static int tear_down(void **state)
{
	allocation_sites_destroy(scene.sites);
	slots_destroy(scene.slots);
	return synthetic_tear_down(state);
}

static bool find(size_t index, struct allocation_site *ret)
{
	uint64_t flags = synthetic_enum(scene.s, index == 0 ? E_RUBY_T_DATA : E_RUBY_T_STRING);

	return allocation_sites_find(scene.sites, object(index), flags, ret);
}

static void read_sites(void)
{
	scene.sites = allocation_sites_create(&scene.walk, &scene.files);
	assert_non_null(scene.sites);
}

static void test_found(void **state)
{
	struct allocation_site site;

	(void)state;
	/* What has no path, no class and no method. */
	for (size_t word = PATH; word <= METHOD; word++)
		put_info(3, word, word == METHOD ? synthetic_enum(scene.s, E_RUBY_Qnil) : 0);
	read_sites();
	for (size_t i = 0; i < OBJECTS; i++) {
		assert_true(find(i, &site));
		assert_int_equal(site.generation, i + 1);
		if (i == 3) {
			assert_null(site.path);
			assert_null(site.class_path);
			assert_null(site.method);
			continue;
		}
		assert_int_equal(site.line, i);
		assert_string_equal(site.path, i % 2 ? "/app/shop.rb" : "a\\xFF.rb");
		assert_string_equal(site.class_path, "Shop");
		assert_string_equal(site.method, "build");
	}
	assert_false(allocation_sites_find(scene.sites, object(0) + 8, 0, &site));
	assert_int_equal(allocation_sites_refused(scene.sites), 0);
	assert_false(allocation_sites_are_incomplete(scene.sites));
}

/* Each word that is checked, with a value that it cannot have. */
static void test_refused(void **state)
{
	static const struct {
		size_t word;
		uint64_t value;
	} wrong[] = {{LIVING, 2},      {PATH, 8},	 {LINE, UINT64_C(1) << 31},
		     {CLASS_PATH, 12}, {METHOD, 0x1000}, {GENERATION, OBJECTS + 1}};
	struct allocation_site site;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		put_info(i, wrong[i].word, wrong[i].value);
	/* A record that passes, of an object of another type. */
	put_info(6, FLAGS, 1);
	read_sites();
	for (size_t i = 0; i < OBJECTS; i++)
		assert_int_equal(find(i, &site), i == 7);
	assert_int_equal(allocation_sites_refused(scene.sites), 6);
	assert_int_equal(allocation_sites_of_others(scene.sites), 1);
}

/* Without one of the marks by which it is recognised, nothing is taken for a traceobj_arg. */
static void test_not_recognised(void **state)
{
	static char other[] = "/usr/lib/ruby/nobjspace.so";
	static char name[] = "tmp_trace_arg";
	struct data_symbol symbol = {.size = 8, .name = name};
	struct allocation_site site;

	(void)state;
	make_data("tracepoints");
	read_sites();
	assert_false(find(1, &site));
	allocation_sites_destroy(scene.sites);
	make_data("tracepoint");
	scene.file.path = other;
	read_sites();
	assert_false(find(1, &site));
	allocation_sites_destroy(scene.sites);
	/* The extension is part of another file, which has symbols. */
	symbol.start = scene.variables + 5 * 8;
	scene.files.symbols = &symbol;
	scene.files.nr_symbols = 1;
	read_sites();
	assert_true(find(1, &site));
}

/* head has no TracePoint for objects that are freed. */
static void test_one_tracepoint(void **state)
{
	struct allocation_site site;

	(void)state;
	for (uint64_t i = 2; i < 5; i++)
		synthetic_put_word(scene.s, scene.tracer + i * 8, i == 2 ? scene.table : i == 3 ? scene.texts : 0);
	read_sites();
	assert_true(find(1, &site));
}

static void test_random(void **state)
{
	const uint64_t at = synthetic_allocate(scene.s, WORDS * 8);
	struct allocation_site site;
	uint64_t seed = 5, found = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		for (uint64_t i = 0; i < WORDS; i++) {
			const uint64_t random = random_next(&seed);

			synthetic_put_word(scene.s, at + i * 8,
					   random % 4 == 0   ? random >> 32
					   : random % 4 == 1 ? object(random >> 8 & (OBJECTS - 1))
							     : at + (random >> 8) % WORDS * 8);
		}
		for (uint64_t i = 0; i < 2; i++)
			synthetic_put_word(scene.s, scene.tracer + (3 + i) * 8, at + random_next(&seed) % WORDS * 8);
		read_sites();
		for (size_t i = 0; i < OBJECTS; i++)
			found += find(i, &site);
		allocation_sites_destroy(scene.sites);
	}
	scene.sites = NULL;
	assert_int_equal(found, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_found, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_not_recognised, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_one_tracepoint, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_random, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
