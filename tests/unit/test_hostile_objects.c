/*
 * Objects whose memory is random: whatever their types and members are, a walk over their references, their sizes and their
 * texts end, and read nothing but the target's memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ruby/object_refs.h"
#include "ruby/object_size.h"
#include "ruby/object_text.h"
#include "ruby/value.h"
#include "synthetic.h"

/* The memory that objects are in, and how often it is filled anew. */
#define PAGES	     64u
#define BYTES	     (PAGES * MEMORY_PAGE)
#define OBJECTS	     256u
#define ROUNDS	     400
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

static void count(void *context, const struct object_ref *ref)
{
	uint64_t *given = context;

	assert_true(value_is_object(ref->target));
	(*given)++;
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
	refs->steps = sizes->steps = STEPS;
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
	return given;
}

static void test_random_objects(void **state)
{
	struct synthetic *s = *state;
	const uint64_t base = synthetic_allocate(s, BYTES + MEMORY_PAGE);
	uint64_t seed = 20261129, given = 0;

	for (int round = 0; round < ROUNDS; round++) {
		static struct object_refs refs;
		static struct object_sizes sizes;

		fill(s, base, &seed);
		for (uint64_t i = 0; i < OBJECTS; i++)
			synthetic_set(s, base + i * SLOT, F_basic_flags, flags(s, &seed));
		assert_true(object_refs_read(&s->ruby, &refs));
		assert_true(object_sizes_read(&s->ruby, &sizes));
		for (uint64_t i = 0; i < OBJECTS; i++)
			given += try_object(s, &refs, &sizes, base + i * SLOT);
		object_refs_clear(&refs);
		object_sizes_clear(&sizes);
	}
	/* Many of them look like objects. */
	assert_in_range(given, ROUNDS * OBJECTS, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_random_objects, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
