/* From positions in code to lines: succ_index_table of iseq.c, built here the way iseq.c reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ruby/code.h"
#include "synthetic.h"

#define BASE UINT64_C(0x100000)

enum { BODY = 0, TABLE = 0x1000, INDEX = 0x8000, CODE = 0x10000, SIZE = 0x20000, ENTRY = 16, BLOCK = 96 };

static uint8_t target[SIZE];
static struct layout layout;
static struct memory *memory;

static void source(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	(void)context;
	for (size_t i = 0; i < count; i++) {
		ok[i] = pages[i] >= BASE && pages[i] < BASE + SIZE;
		if (ok[i])
			memcpy(buffer + i * MEMORY_PAGE, target + (pages[i] - BASE), MEMORY_PAGE);
	}
}

static void place(enum layout_member_id id, uint32_t offset, uint32_t size)
{
	layout.members[id] = (struct layout_member){.present = true, .offset = offset, .size = size};
}

static void put(uint64_t at, uint64_t value, size_t size)
{
	memcpy(target + at, &value, size);
}

/* Offsets that no Ruby has. 9 ranks of 7 bits in each of 2 words, then blocks of 512 positions. */
static int set_up(void **state)
{
	(void)state;
	memset(target, 0, sizeof(target));
	place(F_body_insns_size, 8, 4);
	place(F_body_insns, 16, 8);
	place(F_body_succ_index_table, 40, 8);
	place(F_insn_line_no, 4, 4);
	place(F_succ_imm_part, 8, 16);
	place(F_succ_succ_part, 32, 0);
	place(F_succ_block_rank, 0, 4);
	place(F_succ_block_small_block_ranks, 16, 8);
	place(F_succ_block_bits, 24, 64);
	layout.sizes[S_insn] = (struct layout_number){.present = true, .value = ENTRY};
	layout.sizes[S_succ_block] = (struct layout_number){.present = true, .value = BLOCK};
	put(BODY + 16, BASE + TABLE, 8);
	put(BODY + 40, BASE + INDEX, 8);
	memory = memory_create(source, NULL, 64);
	return memory ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	memory_destroy(memory);
	return 0;
}

enum { IMMEDIATE = 18 };

/* Entries at these positions, with the lines 100, 101, … */
static void make_lines(const unsigned int *positions, size_t count, unsigned int size)
{
	unsigned int rank = 0;

	put(BODY + 8, count, 4);
	for (size_t i = 0; i < count; i++)
		put(TABLE + i * ENTRY + 4, 100 + i, 4);
	for (unsigned int position = 0; position < size; position++) {
		unsigned int at = position - IMMEDIATE;
		uint64_t block = INDEX + 32 + (uint64_t)(at / 512) * BLOCK, word;

		if (position >= IMMEDIATE && at % 512 == 0)
			put(block, rank, 4);
		if (position >= IMMEDIATE && at % 64 == 0 && at % 512 != 0) {
			uint32_t in_block;

			memcpy(&in_block, target + block, 4);
			memcpy(&word, target + block + 16, 8);
			put(block + 16, word | (uint64_t)(rank - in_block) << (at % 512 / 64 - 1) * 9, 8);
		}
		if (rank < count && positions[rank] == position) {
			rank++;
			if (position >= IMMEDIATE) {
				memcpy(&word, target + block + 24 + at % 512 / 64 * 8, 8);
				put(block + 24 + at % 512 / 64 * 8, word | UINT64_C(1) << at % 64, 8);
			}
		}
		if (position < IMMEDIATE) {
			memcpy(&word, target + INDEX + 8 + position / 9 * 8, 8);
			put(INDEX + 8 + position / 9 * 8, word | (uint64_t)rank << position % 9 * 7, 8);
		}
	}
}

/* Drops what was copied of the target before it was changed. */
static struct access look(void)
{
	assert_true(memory_forget(memory));
	return access_begin(memory, &layout);
}

static int64_t line_at(unsigned int size, unsigned int position, bool *failed)
{
	struct access access = look();
	const struct code code = {.body = BASE + BODY, .encoded = BASE + CODE, .size = size};
	int64_t line;

	assert_true(code_has_pc(&code, code.encoded + position * 8));
	line = code_line(&access, &code, code.encoded + position * 8);
	if (failed)
		*failed = access.failed;
	else
		assert_false(access.failed);
	return line;
}

static void test_all_positions(void **state)
{
	static const unsigned int positions[] = {0, 3, 17, 18, 19, 81, 82, 83, 300, 529, 530, 531, 700, 1042, 1199};
	const size_t count = sizeof(positions) / sizeof(positions[0]);
	const struct code code = {.body = BASE + BODY, .encoded = BASE + CODE, .size = 1200};
	struct access access;
	size_t entry = 0;

	(void)state;
	make_lines(positions, count, 1200);
	assert_int_equal(line_at(1200, 0, NULL), 100);
	/* pc is behind the instruction that it is in */
	for (unsigned int pc = 1; pc <= 1200; pc++) {
		while (entry + 1 < count && positions[entry + 1] <= pc - 1)
			entry++;
		assert_int_equal(line_at(1200, pc, NULL), 100 + (int64_t)entry);
	}
	access = look();
	assert_true(code_lines_hold(&access, &code));
}

static void test_one_and_none(void **state)
{
	static const unsigned int positions[] = {0};

	(void)state;
	make_lines(positions, 1, 10);
	put(BODY + 40, 0, 8); /* it needs no index */
	assert_int_equal(line_at(10, 10, NULL), 100);
	put(BODY + 8, 0, 4);
	assert_int_equal(line_at(10, 10, NULL), 0);
}

static void test_negative_line(void **state)
{
	static const unsigned int positions[] = {0};

	(void)state;
	make_lines(positions, 1, 10);
	put(TABLE + 4, (uint32_t)-3, 4);
	assert_int_equal(line_at(10, 5, NULL), -3);
}

static void test_broken_index(void **state)
{
	static const unsigned int positions[] = {0, 5, 9};
	const struct code code = {.body = BASE + BODY, .encoded = BASE + CODE, .size = 10};
	struct access access;
	bool failed;

	(void)state;
	make_lines(positions, 3, 10);
	put(BODY + 8, 2, 4); /* fewer entries than the index counts */
	line_at(10, 10, &failed);
	assert_true(failed);
	access = look();
	assert_false(code_lines_hold(&access, &code));
	put(BODY + 8, 3, 4);
	put(INDEX + 8, 0, 8); /* rank 0 */
	line_at(10, 3, &failed);
	assert_true(failed);
	put(BODY + 40, BASE + SIZE, 8); /* an index that is not there */
	line_at(10, 3, &failed);
	assert_true(failed);
	put(BODY + 8, 11, 4); /* more entries than words */
	access = look();
	assert_false(code_lines_hold(&access, &code));
}

static void test_pc(void **state)
{
	const struct code code = {.encoded = 0x1000, .size = 4};

	(void)state;
	assert_true(code_has_pc(&code, 0x1000));
	assert_true(code_has_pc(&code, 0x1020));
	assert_false(code_has_pc(&code, 0x1028));
	assert_false(code_has_pc(&code, 0xff8));
	assert_false(code_has_pc(&code, 0x1004));
	assert_false(code_has_pc(&code, 0));
}

/* Many codes, from entries at every word to hardly any, each at every position. */
static void test_random_entries(void **state)
{
	unsigned int random = 12345;

	(void)state;
	for (unsigned int round = 0; round < 24; round++) {
		const unsigned int size = 1 + round * 53, density = 1 + round % 6 * 7;
		unsigned int positions[1300], entry = 0;
		size_t count = 0;
		struct access access;
		struct code code = {.body = BASE + BODY, .encoded = BASE + CODE, .size = size};

		/* The first entry is that of the first word. */
		for (unsigned int position = 0; position < size; position++) {
			random = random * 1103515245 + 12345;
			if (position == 0 || (random >> 16) % density == 0)
				positions[count++] = position;
		}
		memset(target + INDEX, 0, CODE - INDEX);
		make_lines(positions, count, size);
		access = look();
		assert_true(code_lines_hold(&access, &code));
		for (unsigned int pc = 0; pc <= size; pc++) {
			while (entry + 1 < count && pc > 0 && positions[entry + 1] <= pc - 1)
				entry++;
			access = look();
			assert_int_equal(code_line(&access, &code, code.encoded + pc * 8), 100 + entry);
			assert_false(access.failed);
		}
	}
}

/* Hostile: ranks beyond the table, in the words and in the blocks. */
static void test_rank_beyond(void **state)
{
	static const unsigned int positions[] = {0, 30, 600};
	bool failed;

	(void)state;
	make_lines(positions, 3, 700);
	assert_int_equal(line_at(700, 700, NULL), 102);
	put(INDEX + 8, UINT64_MAX, 8);
	line_at(700, 5, &failed);
	assert_true(failed);
	put(INDEX + 32 + BLOCK, UINT32_MAX, 4); /* the block's rank; as many positions again make it wrap around */
	line_at(700, 700, &failed);
	assert_true(failed);
	put(INDEX + 32 + BLOCK, 3, 4);
	line_at(700, 700, &failed);
	assert_true(failed);
	put(INDEX + 32 + BLOCK, 2, 4);
	assert_int_equal(line_at(700, 700, NULL), 102);
}

static struct code read_code(struct synthetic *s, uint64_t address)
{
	struct access access = ruby_access(&s->ruby);
	struct code code;

	assert_true(code_read(&access, address, &code));
	return code;
}

static void assert_no_code(struct synthetic *s, uint64_t address)
{
	struct access access = ruby_access(&s->ruby);
	struct code code;

	assert_false(code_read(&access, address, &code));
	assert_true(access.failed);
}

static void assert_bytes(struct synthetic *s, struct bytes bytes, const char *expected)
{
	struct access access = ruby_access(&s->ruby);

	assert_true(value_bytes_are(&access, bytes, expected));
}

static void test_read(void **state)
{
	struct synthetic *s = *state;
	uint64_t address = synthetic_code(s, E_ISEQ_TYPE_BLOCK, "block in m"), body = synthetic_body(s, address);
	uint64_t moved = synthetic_moved(s, address);
	uint64_t method = synthetic_code(s, E_ISEQ_TYPE_METHOD, "m");
	struct code code;

	synthetic_set(s, body, F_body_parent_iseq, 0x1110);
	synthetic_set(s, body, F_body_local_iseq, method);
	synthetic_set(s, body, F_body_builtin_attrs, 9);
	synthetic_set(s, body, F_body_first_lineno, (uint32_t)-2);
	code = read_code(s, moved); /* by compaction */
	assert_int_equal(code.iseq, address);
	assert_int_equal(code.body, body);
	assert_int_equal(code.type, synthetic_enum(s, E_ISEQ_TYPE_BLOCK));
	assert_int_equal(code.size, 100);
	assert_int_equal(code.parent, 0x1110);
	assert_int_equal(code.local, method);
	assert_int_equal(code.builtin_attrs, 9);
	assert_true(code.first_line == -2);
	assert_bytes(s, code.label, "block in m");
	assert_bytes(s, code.path, "/app/x.rb");
	assert_bytes(s, code.absolute_path, "/app/x.rb");
	synthetic_without(s, F_body_builtin_attrs);
	assert_int_equal(read_code(s, address).builtin_attrs, 0);
	synthetic_set(s, body, F_body_local_iseq, synthetic_moved(s, method));
	assert_int_equal(read_code(s, address).local, method);
	synthetic_set(s, body, F_body_local_iseq, moved); /* itself */
	assert_int_equal(read_code(s, moved).local, address);
	assert_int_equal(read_code(s, address).local, address);
}

/* Until 3.1 the first line is a Fixnum. */
static void test_first_line_as_fixnum(void **state)
{
	struct synthetic *s = *state;
	uint64_t address = synthetic_code(s, E_ISEQ_TYPE_MAIN, "<main>"), body = synthetic_body(s, address);

	/* As wide as a VALUE; what follows it in this layout is not looked at. */
	s->layout->members[F_body_first_lineno].size = 8;
	synthetic_set(s, body, F_body_first_lineno, 42 * 2 + 1);
	assert_true(read_code(s, address).first_line == 42);
	synthetic_set(s, body, F_body_first_lineno, (uint64_t)(-7 * 2 + 1));
	assert_true(read_code(s, address).first_line == -7);
}

static void test_paths(void **state)
{
	struct synthetic *s = *state;
	uint64_t address = synthetic_code(s, E_ISEQ_TYPE_MAIN, "<main>"), body = synthetic_body(s, address);
	uint64_t both[] = {synthetic_string(s, "x.rb"), synthetic_string(s, "/srv/x.rb")};
	struct code code;

	synthetic_set(s, body, F_body_pathobj, synthetic_array(s, both, 2));
	code = read_code(s, address);
	assert_bytes(s, code.path, "x.rb");
	assert_bytes(s, code.absolute_path, "/srv/x.rb");
	both[1] = synthetic_enum(s, E_RUBY_Qnil); /* eval */
	synthetic_set(s, body, F_body_pathobj, synthetic_array(s, both, 2));
	code = read_code(s, address);
	assert_bytes(s, code.path, "x.rb");
	assert_int_equal(code.absolute_path.address, 0);
	synthetic_set(s, body, F_body_pathobj, synthetic_array(s, both, 1));
	assert_no_code(s, address);
	both[0] = 0;
	synthetic_set(s, body, F_body_pathobj, synthetic_array(s, both, 2));
	assert_no_code(s, address);
	synthetic_set(s, body, F_body_pathobj, synthetic_enum(s, E_RUBY_Qnil));
	assert_no_code(s, address);
}

static void test_no_code(void **state)
{
	struct synthetic *s = *state;
	uint64_t address = synthetic_code(s, E_ISEQ_TYPE_MAIN, "<main>"), body = synthetic_body(s, address);

	assert_no_code(s, 0);
	assert_no_code(s, SYNTHETIC_BASE + SYNTHETIC_SIZE);
	assert_no_code(s, synthetic_imemo(s, S_iseq, E_imemo_ifunc));
	assert_no_code(s, synthetic_string(s, "<main>"));
	synthetic_set(s, body, F_body_label, 0);
	assert_no_code(s, address);
	synthetic_set(s, address, F_iseq_body, 0);
	assert_no_code(s, address);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_all_positions, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_one_and_none, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_negative_line, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_broken_index, set_up, tear_down),
	    cmocka_unit_test(test_pc),
	    cmocka_unit_test_setup_teardown(test_random_entries, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_rank_beyond, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_read, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_first_line_as_fixnum, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_paths, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_code, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
