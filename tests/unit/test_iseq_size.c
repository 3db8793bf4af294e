/*
 * The size of code whose struct is shorter than the layout says, since the layout is of a build with JIT compilers: what is
 * known is counted, and the size is not called exact.
 */
#include "ruby/iseq_size.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "ruby/malloc_chunk.h"
#include "ruby/object_slot.h"
#include "synthetic.h"

#define CODE_WORDS 3
#define STEPS	   100u

/* Memory from malloc(): its header, and behind it that of the next chunk. Returns its address. */
static uint64_t new_chunk(struct synthetic *s, uint64_t bytes)
{
	const uint64_t at = synthetic_allocate(s, bytes + 32);
	const uint64_t chunk = (at + 15) & ~UINT64_C(15);

	synthetic_put_word(s, chunk + 8, (bytes + 8) | 1);
	synthetic_put_word(s, chunk + 8 + bytes + 8, 0x21);
	for (uint64_t i = 0; i < bytes; i += 8)
		synthetic_put_word(s, chunk + 16 + i, 0);
	return chunk + 16;
}

/* Code whose struct has room for some bytes. Returns whether its size is exact. */
static bool size_of(struct synthetic *s, uint64_t room, uint64_t *ret)
{
	const uint64_t code = synthetic_imemo(s, S_iseq, E_imemo_iseq), body = new_chunk(s, room);
	struct access access;
	uint64_t steps = STEPS;

	synthetic_set(s, body, F_body_iseq_size, CODE_WORDS);
	synthetic_set(s, code, F_iseq_body, body);
	access = ruby_access(&s->ruby);
	return iseq_size(&access, code, access_member(&access, code, F_basic_flags), &steps, ret);
}

static void test_a_struct_that_is_shorter(void **state)
{
	struct synthetic *s = *state;
	const uint64_t bytes = (uint64_t)s->layout->sizes[S_body].value, whole = (bytes + 23) / 16 * 16 - 8;
	uint64_t exact, shorter, longer;

	assert_true(size_of(s, whole, &exact));
	assert_true(exact >= bytes + CODE_WORDS * UINT64_C(8));
	assert_false(size_of(s, whole - 48, &shorter));
	assert_int_equal(shorter, exact - bytes + whole - 48);
	/* A struct that has got more than it asked for. */
	assert_true(size_of(s, whole + 16, &longer));
	assert_int_equal(longer, exact);
}

static void test_what_is_not_from_malloc(void **state)
{
	struct synthetic *s = *state;
	const uint64_t chunk = new_chunk(s, 248);
	struct access access = ruby_access(&s->ruby);

	assert_int_equal(malloc_chunk_words(&access, chunk, 256), 31);
	assert_int_equal(malloc_chunk_words(&access, chunk, 255), 0);
	assert_int_equal(malloc_chunk_words(&access, chunk + 16, 256), 0);
	assert_int_equal(malloc_chunk_words(&access, NOWHERE, 256), 0);
	assert_int_equal(malloc_chunk_words(&access, 0, 256), 0);
	assert_false(access.failed);
	/* The next chunk says that this one is free. */
	synthetic_put_word(s, chunk + 248, 0x20);
	access = ruby_access(&s->ruby);
	assert_int_equal(malloc_chunk_words(&access, chunk, 256), 0);
	/* A mapping of its own has no next chunk, and ends with the chunk. */
	synthetic_put_word(s, chunk - 8, 256 | 2);
	access = ruby_access(&s->ruby);
	assert_int_equal(malloc_chunk_words(&access, chunk, 256), 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_a_struct_that_is_shorter, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_what_is_not_from_malloc, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
