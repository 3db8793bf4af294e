/*
 * Objects whose memory is random: whatever their types and members are, a walk over their references, their sizes and their
 * texts end, and read nothing but the target's memory. And objects that lead to more than they can have: what is known of
 * the others stays known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ruby/inspect.h"
#include "ruby/locals.h"
#include "ruby/object_refs.h"
#include "ruby/object_size.h"
#include "ruby/object_text.h"
#include "ruby/value.h"
#include "synthetic.h"

/*
 * The memory that objects are in, and how often it is filled anew. Objects lead to many pages that are not there, and the
 * snapshot has a place for each of them, so each few rounds have a snapshot of their own.
 */
#define PAGES	     64u
#define BYTES	     (PAGES * MEMORY_PAGE)
#define OBJECTS	     256u
#define ROUNDS	     10
#define SNAPSHOTS    40
#define SLOT	     1024u
#define STEPS	     UINT64_C(20000)
#define LONGEST_TEXT 600u

static uint64_t random_word(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* A word that leads somewhere: to other memory of the kind, to its end, to small and huge numbers, or to nothing. */
static uint64_t word(uint64_t *seed, uint64_t base)
{
	const uint64_t random = random_word(seed);

	switch (random >> 60) {
	case 0:
		return random & 0xff;
	case 1:
		return random & 0xffff;
	case 2:
		return UINT64_MAX - (random & 0xff);
	case 3:
		return NOWHERE - 8 * (random & 0xff);
	case 4:
		return random;
	case 5:
		return 0;
	default:
		return base + random % BYTES / 8 * 8;
	}
}

static void fill(struct synthetic *s, uint64_t base, uint64_t *seed)
{
	static uint64_t words[BYTES / 8];

	for (size_t i = 0; i < BYTES / 8; i++)
		words[i] = word(seed, base);
	synthetic_put(s, base, words, sizeof(words));
}

/* Flags of any type; the other bits are random, but those that tell what kind of imemo it is are often right. */
static uint64_t flags(const struct synthetic *s, uint64_t *seed)
{
	const uint64_t mask = synthetic_enum(s, E_RUBY_T_MASK), random = random_word(seed);

	return (random & ~mask & (random_word(seed) | UINT64_C(0xf) << 20)) | ((0x20 + random % 0x20) & mask);
}

/* The types of Ruby itself whose structs are known, and another one. */
static const char *const type_names[] = {
    "proc",
    "binding",
    "mutex",
    "queue",
    "sized_queue",
    "T_IMEMO/iseq",
    "autoload_table",
    "VM/thread",
    "backtrace",
    "fiber",
    "memory_view/exported_object_registry",
    "other",
};

#define TYPES (sizeof(type_names) / sizeof(type_names[0]))

static void new_types(struct synthetic *s, uint64_t types[TYPES])
{
	for (size_t i = 0; i < TYPES; i++) {
		const uint64_t name = synthetic_allocate(s, 64);

		synthetic_put(s, name, type_names[i], strlen(type_names[i]) + 1);
		types[i] = synthetic_struct(s, S_data_type);
		synthetic_set(s, types[i], F_data_type_name, name);
		synthetic_set(s, types[i], F_data_type_dmark, 1);
	}
}

/* Makes a T_DATA of one of these types. Its struct is anywhere. */
static void put_data(struct synthetic *s, uint64_t address, uint64_t type)
{
	synthetic_set(s, address, F_basic_flags,
		      synthetic_enum(s, E_RUBY_T_DATA) | synthetic_enum(s, E_RUBY_TYPED_FL_IS_TYPED_DATA));
	synthetic_set(s, address, F_typed_data_type, type);
}

static void count(void *context, const struct object_ref *ref)
{
	uint64_t *given = context;

	assert_true(value_is_object(ref->target));
	(*given)++;
}

/* More than an inspected value has: after INSPECT_BYTES, one more part, and the ends of those around it. */
#define LONGEST_VALUE (INSPECT_BYTES + 6 * INSPECT_STRING_BYTES)

/* Writes an object as a value, and reads it as a control frame. */
static void try_values(struct synthetic *s, uint64_t address, const uint8_t *bytes)
{
	static struct inspect inspect;
	struct frame frame = {.cfp = address, .iseq = value_word(bytes + 16), .kind = FRAME_RUBY};
	struct text text = {0};
	struct locals locals;

	assert_true(inspect_begin(&s->ruby, &inspect));
	inspect.steps = STEPS;
	assert_non_null(inspect_value(&inspect, address, &text));
	assert_in_range(text.length, 1, LONGEST_VALUE);
	text_clear(&text);
	inspect_end(&inspect);
	assert_true(locals_read(&s->ruby, &frame, false, &locals));
	assert_in_range(locals.count, 0, LOCALS_MAX);
	locals_clear(&locals);
}

/* Returns how many references it has. */
static uint64_t try_object(struct synthetic *s, struct object_refs *refs, struct object_sizes *sizes, uint64_t address)
{
	uint8_t bytes[SLOT];
	struct access access = ruby_access(&s->ruby);
	const struct object_slot slot = {address, bytes, sizeof(bytes)};
	struct text text = {0};
	uint64_t given = 0, owned, length;

	assert_true(access_bytes(&access, address, bytes, sizeof(bytes)));
	refs->steps = sizes->steps = steps_begin(STEPS / 3, OBJECT_REFS_FEW);
	for (enum refs_round round = 0; round < REFS_ROUNDS; round++)
		object_refs_wants(refs, &access, &slot, round, &length);
	object_refs_each(refs, &access, &slot, count, &given);
	/* A step can give some references: a method entry, or a pair of a Hash. */
	assert_in_range(given, 0, 4 * STEPS);
	object_size_wants(sizes, &slot, &length);
	object_size(sizes, &access, &slot, &owned);
	object_add_text(&s->ruby, &access, address, &text);
	assert_in_range(text.length, 1, LONGEST_TEXT);
	text_clear(&text);
	try_values(s, address, bytes);
	return given;
}

/* Tries many objects. Returns how many references they have. */
static uint64_t try_objects(struct synthetic *s, uint64_t base, const uint64_t types[TYPES], uint64_t *seed)
{
	static struct object_refs refs;
	static struct object_sizes sizes;
	uint64_t given = 0;

	fill(s, base, seed);
	for (uint64_t i = 0; i < OBJECTS; i++)
		if (i % 4 != 0)
			synthetic_set(s, base + i * SLOT, F_basic_flags, flags(s, seed));
		else
			put_data(s, base + i * SLOT, types[i / 4 % TYPES]);
	assert_true(object_refs_read(&s->ruby, &refs));
	refs.contexts = true;
	assert_true(object_sizes_read(&s->ruby, &sizes));
	for (uint64_t i = 0; i < OBJECTS; i++)
		given += try_object(s, &refs, &sizes, base + i * SLOT);
	object_refs_clear(&refs);
	object_sizes_clear(&sizes);
	return given;
}

static void test_random_objects(void **state)
{
	uint64_t seed = 20261129, given = 0;

	for (int i = 0; i < SNAPSHOTS; i++) {
		uint64_t base, types[TYPES];

		synthetic_set_up(state);
		new_types(*state, types);
		base = synthetic_allocate(*state, BYTES + MEMORY_PAGE);
		for (int round = 0; round < ROUNDS; round++)
			given += try_objects(*state, base, types, &seed);
		synthetic_tear_down(state);
	}
	/* Many of them look like objects. */
	assert_in_range(given, SNAPSHOTS * ROUNDS * OBJECTS, UINT64_MAX);
}

/* How many hostile objects there are before the others. */
#define HOSTILE	     20
#define VERY_HOSTILE 200

static void count_all(void *context, const struct object_ref *ref)
{
	(void)ref;
	++*(uint64_t *)context;
}

/* How many references an object has; *all receives whether these are all. */
static uint64_t refs_of(struct synthetic *s, struct object_refs *refs, uint64_t address, bool *all)
{
	const struct object_slot slot = {address, s->bytes + (address - SYNTHETIC_BASE), SLOT};
	struct access access = ruby_access(&s->ruby);
	uint64_t given = 0;

	*all = object_refs_each(refs, &access, &slot, count_all, &given);
	return given;
}

/* An Array with as many elements, all of which are objects. */
static uint64_t array_of(struct synthetic *s, uint64_t count)
{
	const uint64_t words = synthetic_allocate(s, count * 8), array = synthetic_array(s, NULL, 0);

	for (uint64_t i = 0; i < count; i++)
		synthetic_put_word(s, words + i * 8, SYNTHETIC_BASE + 8);
	synthetic_set(s, array, F_array_heap_ptr, words);
	synthetic_set(s, array, F_array_heap_len, count);
	return array;
}

/* Memory of C functions that is in a list with itself. */
static uint64_t endless_list(struct synthetic *s)
{
	const uint64_t list = synthetic_imemo(s, S_tmpbuf, E_imemo_tmpbuf);

	synthetic_set(s, list, F_tmpbuf_next, list);
	return list;
}

static void test_refs_of_others(void **state)
{
	struct synthetic *s = *state;
	const uint64_t large = array_of(s, 20000), small = array_of(s, OBJECT_REFS_FEW / 2), list = endless_list(s);
	const uint64_t tiny = array_of(s, STEPS_ALWAYS - 1);
	static struct object_refs refs;
	bool all;

	synthetic_allocate(s, SLOT);
	assert_true(object_refs_read(&s->ruby, &refs));
	refs.ivars.generic_known = true;
	refs.steps = steps_begin(50000, OBJECT_REFS_FEW);
	refs_of(s, &refs, list, &all);
	assert_false(all);
	/* One object takes at most half of what is not reserved. */
	assert_in_range(refs.steps.left, 100000, 110000);
	assert_int_equal(refs_of(s, &refs, large, &all), 20000);
	assert_true(all);
	for (int i = 0; i < HOSTILE; i++)
		refs_of(s, &refs, list, &all);
	assert_true(refs_of(s, &refs, large, &all) < 20000);
	assert_false(all);
	assert_int_equal(refs_of(s, &refs, small, &all), OBJECT_REFS_FEW / 2);
	assert_true(all);
	for (int i = 0; i < VERY_HOSTILE; i++)
		refs_of(s, &refs, list, &all);
	assert_int_equal(refs.steps.left, 0);
	refs_of(s, &refs, small, &all);
	assert_false(all);
	assert_int_equal(refs_of(s, &refs, tiny, &all), STEPS_ALWAYS - 1);
	assert_true(all);
	object_refs_clear(&refs);
}

/* Code with one inline cache of a constant, the path of which has so many parts. */
static uint64_t code_with_path(struct synthetic *s, uint64_t parts)
{
	const uint64_t code = synthetic_code(s, E_ISEQ_TYPE_METHOD, "code"), body = synthetic_body(s, code);
	const uint64_t caches = synthetic_struct(s, S_is_entry), path = synthetic_allocate(s, (parts + 1) * 8);

	for (uint64_t i = 0; i < parts; i++)
		synthetic_put_word(s, path + i * 8, 1);
	synthetic_put_word(s, path + parts * 8, 0);
	synthetic_set(s, caches, F_constant_cache_segments, path);
	synthetic_set(s, body, F_body_is_entries, caches);
	synthetic_set(s, body, F_body_ic_size, 1);
	return code;
}

static bool size_of(struct synthetic *s, struct object_sizes *sizes, uint64_t address, uint64_t *owned)
{
	const struct object_slot slot = {address, s->bytes + (address - SYNTHETIC_BASE), SLOT};
	struct access access = ruby_access(&s->ruby);

	return object_size(sizes, &access, &slot, owned);
}

static void test_sizes_of_others(void **state)
{
	struct synthetic *s = *state;
	const uint64_t hostile = code_with_path(s, OBJECT_SIZE_NEEDED), other = code_with_path(s, 100);
	static struct object_sizes sizes;
	uint64_t owned, again;

	synthetic_allocate(s, SLOT);
	assert_true(object_sizes_read(&s->ruby, &sizes));
	assert_true(size_of(s, &sizes, other, &owned));
	assert_in_range(owned, 100 * 8, 100000);
	for (int i = 0; i < HOSTILE; i++)
		assert_false(size_of(s, &sizes, hostile, &again));
	/* What is not reserved is used up. */
	assert_true(steps_for_one(&sizes.steps) <= OBJECT_SIZE_FEW);
	assert_true(size_of(s, &sizes, other, &again));
	assert_int_equal(again, owned);
	object_sizes_clear(&sizes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random_objects),
	    cmocka_unit_test_setup_teardown(test_refs_of_others, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_sizes_of_others, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
