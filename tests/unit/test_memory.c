/* The snapshot of pages, over a target that is an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "memory/memory.h"

#define BASE  UINT64_C(0x7f0000000000)
#define PAGES 64

static uint8_t target[PAGES * 4096];
static bool readable[PAGES];
static size_t calls, pages_copied;

static void source(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	assert_ptr_equal(context, target);
	calls++;
	for (size_t i = 0; i < count; i++) {
		uint64_t page = (pages[i] - BASE) / MEMORY_PAGE;

		assert_true(i == 0 || pages[i] > pages[i - 1]);
		assert_int_equal(pages[i] % MEMORY_PAGE, 0);
		ok[i] = page < PAGES && readable[page];
		if (ok[i])
			memcpy(buffer + i * MEMORY_PAGE, target + page * MEMORY_PAGE, MEMORY_PAGE);
		pages_copied++;
	}
}

static int set_up(void **state)
{
	for (size_t i = 0; i < sizeof(target); i++)
		target[i] = (uint8_t)(i * 7 + i / 4096);
	memset(readable, true, sizeof(readable));
	calls = pages_copied = 0;
	*state = memory_create(source, target, PAGES);
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	memory_destroy(*state);
	return 0;
}

static void assert_reads(struct memory *memory, uint64_t offset, size_t length)
{
	uint8_t buffer[3 * 4096];

	assert_true(length <= sizeof(buffer));
	assert_true(memory_read(memory, BASE + offset, buffer, length));
	assert_memory_equal(buffer, target + offset, length);
}

static void test_each_page_once(void **state)
{
	assert_reads(*state, 4090, 4096);
	assert_reads(*state, 100, 8);
	assert_reads(*state, 4096, 8);
	assert_int_equal(pages_copied, 2);
	assert_int_equal(memory_pages(*state), 2);
}

/* A snapshot that recycles has room for more than its pages, one after the other. */
static void test_recycled(void **state)
{
	struct memory *memory = memory_create(source, target, 4);
	uint8_t bytes[16];

	(void)state;
	assert_non_null(memory);
	for (size_t i = 0; i < 4; i++)
		assert_reads(memory, i * MEMORY_PAGE, 8);
	assert_false(memory_read(memory, BASE + 4 * MEMORY_PAGE, bytes, 8));
	memory_recycle(memory);
	for (size_t i = 0; i < PAGES; i++)
		assert_reads(memory, i * MEMORY_PAGE, 8);
	assert_true(memory_pages(memory) <= 4);
	/* Across all pages that there is room for, and up to a page that cannot be read. */
	assert_reads(memory, 10, 3 * MEMORY_PAGE);
	readable[PAGES - 1] = false;
	assert_false(memory_read(memory, BASE + (PAGES - 1) * MEMORY_PAGE - 8, bytes, 16));
	memory_destroy(memory);
}

static void slow_source(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	source(context, pages, count, buffer, ok);
}

/* The time of a source that is waited for counts, or not. */
static void test_slow_source(void **state)
{
	(void)state;
	for (int own = 0; own < 2; own++) {
		struct memory *memory = memory_create(slow_source, target, PAGES);
		uint8_t byte;

		assert_non_null(memory);
		if (own)
			memory_count_own_time(memory);
		memory_limit(memory, 20000000);
		for (size_t i = 0; i < 10; i++)
			memory_read(memory, BASE + i * MEMORY_PAGE, &byte, 1);
		assert_int_equal(memory_is_over(memory), !own);
		/* What it does itself always does. */
		for (size_t i = 0; own && i < 100000000 && memory_read(memory, BASE, &byte, 1); i++)
			;
		assert_true(memory_is_over(memory));
		memory_destroy(memory);
	}
}

static bool lacks(const void *context, uint64_t page)
{
	assert_ptr_equal(context, target);
	return page == BASE + 4 * MEMORY_PAGE;
}

/* What the source ought to have is told apart from what is not there. */
static void test_lacking(void **state)
{
	uint8_t bytes[16];

	memory_set_lacking(*state, lacks, target);
	readable[2] = readable[4] = false;
	assert_reads(*state, 3 * MEMORY_PAGE, 16);
	assert_false(memory_read(*state, BASE + 2 * MEMORY_PAGE, bytes, 8));
	assert_int_equal(memory_lacked(*state), 0);
	assert_false(memory_read(*state, BASE + 4 * MEMORY_PAGE + 100, bytes, 8));
	assert_false(memory_read(*state, BASE + 4 * MEMORY_PAGE - 8, bytes, 16));
	assert_int_equal(memory_lacked(*state), 2);
}

/* Once the time is up, every read is refused, also of what is there; what is copied at once is copied. */
static void test_limit(void **state)
{
	uint8_t byte;
	size_t reads = 0;

	assert_reads(*state, 5, 1);
	memory_limit(*state, 1);
	while (memory_read(*state, BASE + 5, &byte, 1))
		assert_true(++reads < 1000);
	assert_true(memory_is_over(*state));
	assert_false(memory_read(*state, BASE + 5, &byte, 1));
	assert_true(memory_forget(*state));
	memory_prefetch(*state);
	assert_true(memory_is_over(*state));
	memory_limit(*state, 0);
	assert_false(memory_is_over(*state));
	assert_reads(*state, 5, 1);
	assert_int_equal(pages_copied, 2);
	/* A page that is not there is not copied any more. */
	memory_limit(*state, 1);
	assert_false(memory_read(*state, BASE + 9 * MEMORY_PAGE, &byte, 1));
	assert_true(memory_is_over(*state));
	assert_int_equal(pages_copied, 2);
	memory_limit(*state, 3600L * 1000000000);
	assert_reads(*state, 9 * MEMORY_PAGE, 1);
	for (size_t i = 0; i < 1000; i++)
		assert_reads(*state, 5, 1);
	assert_false(memory_is_over(*state));
}

static void test_copies_stay(void **state)
{
	uint8_t byte, before = target[5];

	assert_reads(*state, 5, 1);
	target[5] ^= 0xff;
	assert_true(memory_read(*state, BASE + 5, &byte, 1));
	assert_int_equal(byte, before);
	assert_true(memory_has_changed(*state, BASE, 8));
	assert_false(memory_has_changed(*state, BASE + 6, 4096 - 6));
	assert_true(memory_forget(*state));
	assert_reads(*state, 5, 1);
}

static void test_unreadable_page_between(void **state)
{
	uint8_t buffer[8192];

	readable[1] = false;
	assert_false(memory_read(*state, BASE + 4000, buffer, sizeof(buffer)));
	assert_reads(*state, 0, 4096);
	assert_reads(*state, 8192, 4096);
	assert_true(memory_has_changed(*state, BASE + 4000, 200));
}

static void test_sealed(void **state)
{
	uint8_t byte;

	assert_reads(*state, 0, 1);
	assert_true(memory_forget(*state));
	memory_prefetch(*state);
	memory_seal(*state);
	calls = 0;
	assert_reads(*state, 0, 4096);
	assert_int_equal(memory_missed(*state), 0);
	assert_false(memory_read(*state, BASE + 4096, &byte, 1));
	assert_int_equal(memory_missed(*state), 1);
	assert_int_equal(calls, 0);
	/* What was missed is wanted the next time. */
	assert_true(memory_forget(*state));
	assert_int_equal(memory_missed(*state), 0);
	memory_prefetch(*state);
	memory_seal(*state);
	assert_reads(*state, 0, 8192);
	assert_int_equal(calls, 1);
}

static void test_prefetch_is_one_call(void **state)
{
	for (int page = PAGES - 1; page >= 0; page -= 3)
		assert_reads(*state, (uint64_t)page * 4096, 8);
	readable[3] = false;
	assert_true(memory_forget(*state));
	calls = pages_copied = 0;
	memory_prefetch(*state);
	assert_int_equal(calls, 1);
	assert_int_equal(pages_copied, memory_pages(*state));
	assert_reads(*state, 0, 8);
	assert_int_equal(calls, 1);
}

static void test_time_limit(void **state)
{
	struct memory *small = memory_create(source, target, 3);
	uint8_t byte;

	(void)state;
	for (uint64_t page = 0; page < 3; page++)
		assert_reads(small, page * 4096, 1);
	assert_false(memory_read(small, BASE + 3 * 4096, &byte, 1));
	assert_reads(small, 0, 1);
	memory_destroy(small);
}

static void test_hostile_addresses(void **state)
{
	uint8_t buffer[64];

	assert_false(memory_read(*state, UINT64_MAX - 8, buffer, sizeof(buffer)));
	assert_false(memory_read(*state, 0, buffer, sizeof(buffer)));
	assert_false(memory_read(*state, BASE + sizeof(target), buffer, 1));
	assert_true(memory_read(*state, UINT64_MAX, buffer, 0));
	assert_true(memory_has_changed(*state, UINT64_MAX - 8, 64));
	assert_true(memory_has_changed(*state, BASE, (size_t)1 << 40));
	assert_false(memory_has_changed(*state, 0, 0));
}

/* A page that could not be read is known to be so: it is not wanted again before the next copy. */
static void test_sealed_unreadable(void **state)
{
	uint8_t byte;

	readable[2] = false;
	assert_false(memory_read(*state, BASE + 2 * 4096, &byte, 1));
	assert_true(memory_forget(*state));
	memory_prefetch(*state);
	memory_seal(*state);
	readable[2] = true;
	assert_false(memory_read(*state, BASE + 2 * 4096, &byte, 1));
	assert_int_equal(memory_missed(*state), 0);
	/* Each read that misses counts, and what comes before the page it lacks is not given. */
	assert_false(memory_read(*state, BASE + 7 * 4096, &byte, 1));
	assert_false(memory_read(*state, BASE + 7 * 4096 + 8, &byte, 1));
	assert_int_equal(memory_missed(*state), 2);
	assert_true(memory_forget(*state));
	memory_prefetch(*state);
	assert_reads(*state, 2 * 4096, 8);
	assert_reads(*state, 7 * 4096, 8);
}

static void test_changed_over_pages(void **state)
{
	assert_reads(*state, 4000, 200);
	assert_false(memory_has_changed(*state, BASE + 4000, 200));
	target[4096] ^= 1;
	assert_true(memory_has_changed(*state, BASE + 4000, 200));
	assert_true(memory_has_changed(*state, BASE + 4096, 1));
	assert_false(memory_has_changed(*state, BASE + 4000, 96));
	assert_false(memory_has_changed(*state, BASE + 4097, 100));
	/* The copy has stayed as it was. */
	target[4096] ^= 1;
	assert_reads(*state, 4000, 200);
	assert_false(memory_has_changed(*state, BASE + 4000, 200));
	readable[1] = false; /* unmapped since */
	assert_true(memory_has_changed(*state, BASE + 4000, 200));
	assert_false(memory_has_changed(*state, BASE + 4000, 96));
}

static void test_nothing_to_copy(void **state)
{
	assert_true(memory_forget(*state));
	memory_prefetch(*state);
	assert_int_equal(memory_pages(*state), 0);
	assert_int_equal(pages_copied, 0);
	assert_reads(*state, 0, 8);
}

/* Pages all over the address space, each full of its own number. */
static void numbers(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	(void)context;
	for (size_t i = 0; i < count; i++) {
		for (size_t at = 0; at < MEMORY_PAGE; at += 8)
			memcpy(buffer + i * MEMORY_PAGE + at, &pages[i], 8);
		ok[i] = pages[i] / MEMORY_PAGE % 5 != 0;
	}
}

static void assert_numbers(struct memory *memory, size_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t page = i * i * 0x3f001000 & ~(MEMORY_PAGE - 1), word;
		bool there = page / MEMORY_PAGE % 5 != 0;

		assert_int_equal(memory_read(memory, page + 8 * (i % 512), &word, 8), there);
		if (there)
			assert_int_equal(word, page);
	}
}

static void test_many_pages(void **state)
{
	struct memory *memory = memory_create(numbers, NULL, 5000);

	(void)state;
	assert_numbers(memory, 5000);
	assert_true(memory_forget(memory));
	memory_prefetch(memory);
	memory_seal(memory);
	assert_numbers(memory, 5000);
	assert_int_equal(memory_missed(memory), 0);
	memory_destroy(memory);
}

/* What was copied otherwise comes before pages, and instead of them where that is asked for. */
static void test_overlay(void **state)
{
	static const uint8_t first[16] = "first piece", second[8] = "second";
	const struct memory_piece pieces[] = {{BASE + 100, 16, first}, {BASE + 5000, 8, second}};
	struct memory *memory = *state;
	uint8_t buffer[16];

	memory_overlay(memory, pieces, 2, BASE + 4096, BASE + 8192);
	assert_true(memory_read(memory, BASE + 100, buffer, 16));
	assert_memory_equal(buffer, first, 16);
	assert_true(memory_read(memory, BASE + 104, buffer, 4));
	assert_memory_equal(buffer, first + 4, 4);
	assert_true(memory_read(memory, BASE + 5000, buffer, 8));
	assert_memory_equal(buffer, second, 8);
	assert_int_equal(calls, 0);
	/* Beside a piece, or across its end: the page. */
	assert_reads(memory, 99, 1);
	assert_reads(memory, 110, 7);
	assert_reads(memory, 0, 16);
	/* But not in the range that only pieces serve. */
	assert_false(memory_read(memory, BASE + 4999, buffer, 1));
	assert_false(memory_read(memory, BASE + 5004, buffer, 8));
	assert_false(memory_read(memory, BASE + 4096, buffer, 1));
	assert_reads(memory, 8192, 16);
	memory_overlay(memory, NULL, 0, 0, 0);
	assert_reads(memory, 100, 16);
	assert_reads(memory, 5000, 8);
}

/* All that is wanted comes by one call, each page once. */
static void test_fetch(void **state)
{
	uint8_t byte;

	memory_want(*state, BASE + 2 * MEMORY_PAGE + 5, BASE + 5 * MEMORY_PAGE);
	memory_want(*state, BASE + 4 * MEMORY_PAGE, BASE + 4 * MEMORY_PAGE);
	memory_seal(*state);
	assert_int_equal(calls, 0);
	readable[9] = false;
	assert_false(memory_read(*state, BASE + 9 * MEMORY_PAGE, &byte, 1));
	assert_false(memory_read(*state, BASE, &byte, 1));
	assert_int_equal(memory_missed(*state), 2);
	assert_int_equal(memory_fetch(*state), 5);
	assert_int_equal(calls, 1);
	assert_int_equal(memory_missed(*state), 0);
	assert_reads(*state, 2 * MEMORY_PAGE, 3 * MEMORY_PAGE);
	assert_reads(*state, 0, 8);
	assert_false(memory_read(*state, BASE + 9 * MEMORY_PAGE, &byte, 1));
	/* Neither missed, as what was tried, nor copied, since it is sealed still. */
	assert_int_equal(memory_missed(*state), 0);
	assert_false(memory_read(*state, BASE + 20 * MEMORY_PAGE, &byte, 1));
	assert_int_equal(memory_missed(*state), 1);
	assert_int_equal(calls, 1);
}

static void test_nothing_to_fetch(void **state)
{
	memory_want(*state, BASE + 10, BASE + 10);
	memory_want(*state, BASE + 10, BASE);
	assert_int_equal(memory_fetch(*state), 0);
	assert_int_equal(calls, 0);
	/* No more than there is room for. */
	memory_want(*state, 0, UINT64_MAX);
	assert_int_equal(memory_fetch(*state), PAGES);
	assert_int_equal(calls, 1);
}

/* Changes a byte of each page of the target. */
static void go_on(void)
{
	for (size_t page = 0; page < PAGES; page++)
		target[page * MEMORY_PAGE + 5]++;
}

static bool reads_now(struct memory *memory, uint64_t page)
{
	uint8_t byte;

	return memory_read(memory, BASE + page * MEMORY_PAGE + 5, &byte, 1) && byte == target[page * MEMORY_PAGE + 5];
}

/* What changes is of the moment at which the target was stopped, and nothing else; what lasts is copied when it is read. */
static void test_two_moments(void **state)
{
	const uint8_t *fifth = target + 5;
	uint8_t stopped, byte;

	assert_true(reads_now(*state, 0));
	assert_int_equal(memory_reads(*state, MEMORY_LASTS), MEMORY_CHANGES);
	assert_true(reads_now(*state, 1));
	go_on();
	assert_true(memory_forget_changing(*state));
	pages_copied = 0;
	memory_prefetch(*state);
	assert_int_equal(pages_copied, 1);
	/* While it is stopped, what is wanted changes, and nothing else is copied. */
	memory_want(*state, BASE + 2 * MEMORY_PAGE, BASE + 2 * MEMORY_PAGE + 1);
	assert_int_equal(memory_fetch(*state), 1);
	stopped = *fifth;
	memory_seal_changing(*state);
	go_on();
	assert_true(reads_now(*state, 1));
	assert_true(reads_now(*state, 3));
	/* A page of both kinds was copied once. */
	assert_true(memory_read(*state, BASE + 5, &byte, 1));
	assert_int_equal(byte, stopped);
	assert_int_equal(memory_missed(*state), 0);
	assert_int_equal(memory_reads(*state, MEMORY_CHANGES), MEMORY_LASTS);
	assert_true(memory_read(*state, BASE + 5, &byte, 1));
	assert_int_equal(byte, stopped);
	assert_false(reads_now(*state, 2));
	assert_int_equal(memory_missed(*state), 0);
	for (uint64_t page = 1; page < 5; page += page < 2 ? 2 : 1)
		assert_false(memory_read(*state, BASE + page * MEMORY_PAGE, &byte, 1));
	assert_int_equal(memory_missed(*state), 3);
	/* The next time, these are copied, too. */
	assert_true(memory_forget_changing(*state));
	pages_copied = 0;
	memory_prefetch(*state);
	assert_int_equal(pages_copied, 5);
	memory_seal_changing(*state);
	for (uint64_t page = 0; page < 5; page++)
		assert_true(reads_now(*state, page));
	assert_true(memory_forget(*state));
	memory_prefetch(*state);
	memory_seal(*state);
	assert_true(reads_now(*state, 4));
}

/* What changes is copied twice, and compared: what changes after that is of no account, nor what was not copied twice. */
static void test_copied_twice(void **state)
{
	uint8_t before, byte;

	assert_true(reads_now(*state, 0));
	assert_true(reads_now(*state, 1));
	assert_true(memory_forget_changing(*state));
	memory_prefetch(*state);
	memory_want(*state, BASE + 2 * MEMORY_PAGE, BASE + 2 * MEMORY_PAGE + 1);
	assert_int_equal(memory_fetch(*state), 1);
	before = target[MEMORY_PAGE + 9]++;
	pages_copied = 0;
	assert_true(memory_copy_again(*state));
	assert_int_equal(pages_copied, 3);
	memory_seal_changing(*state);
	go_on();
	assert_false(memory_has_changed(*state, BASE, MEMORY_PAGE + 9));
	assert_true(memory_has_changed(*state, BASE, MEMORY_PAGE + 10));
	assert_false(memory_has_changed(*state, BASE + MEMORY_PAGE + 10, 2 * MEMORY_PAGE - 10));
	assert_int_equal(pages_copied, 3);
	/* What changes is read from the first copy, what lasts from the second one. */
	assert_true(memory_read(*state, BASE + MEMORY_PAGE + 9, &byte, 1));
	assert_int_equal(byte, before);
	memory_reads(*state, MEMORY_LASTS);
	assert_true(memory_read(*state, BASE + MEMORY_PAGE + 9, &byte, 1));
	assert_int_equal(byte, before + 1);
	/* Of pages of which one has no second copy, all are read again. */
	assert_true(reads_now(*state, 3));
	assert_false(memory_has_changed(*state, BASE + 3 * MEMORY_PAGE, 8));
	assert_true(memory_has_changed(*state, BASE + 2 * MEMORY_PAGE, MEMORY_PAGE + 8));
	/* The next copy has no second one. */
	assert_true(memory_forget(*state));
	memory_prefetch(*state);
	assert_true(reads_now(*state, 0));
	assert_false(memory_has_changed(*state, BASE, 8));
	go_on();
	assert_true(memory_has_changed(*state, BASE, 8));
}

/* What was not read in the last pass is copied neither in the stop nor in advance after it, but when it is read. */
static void test_passes(void **state)
{
	uint64_t copied;

	memory_reads(*state, MEMORY_LASTS);
	for (uint64_t page = 0; page < 4; page++)
		assert_true(reads_now(*state, page));
	memory_reads(*state, MEMORY_CHANGES);
	for (uint64_t page = 4; page < 8; page++)
		assert_true(reads_now(*state, page));
	for (int times = 0; times < 2; times++) {
		/* What is read while it is stopped is no pass. */
		assert_true(memory_forget_changing(*state));
		pages_copied = 0;
		memory_prefetch(*state);
		assert_int_equal(pages_copied, 4);
		assert_true(reads_now(*state, 5));
	}
	memory_seal_changing(*state);
	assert_int_equal(memory_fetch(*state), 4);
	assert_true(reads_now(*state, 6));
	memory_reads(*state, MEMORY_LASTS);
	assert_true(reads_now(*state, 3));
	assert_true(memory_forget_changing(*state));
	pages_copied = 0;
	memory_prefetch(*state);
	assert_int_equal(pages_copied, 1);
	memory_seal_changing(*state);
	assert_int_equal(memory_fetch(*state), 1);
	copied = memory_copied(*state);
	assert_true(reads_now(*state, 3));
	assert_int_equal(memory_copied(*state), copied);
	assert_true(reads_now(*state, 2));
	assert_int_equal(memory_copied(*state), copied + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_fetch, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_nothing_to_fetch, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_each_page_once, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_copies_stay, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_time_limit, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_unreadable_page_between, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_overlay, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_sealed, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_prefetch_is_one_call, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_two_moments, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_copied_twice, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_passes, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_limit, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_lacking, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_recycled, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_slow_source, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_hostile_addresses, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_sealed_unreadable, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_changed_over_pages, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_nothing_to_copy, set_up, tear_down),
	    cmocka_unit_test(test_many_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
