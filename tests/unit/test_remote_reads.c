/* When a thread may be read from elsewhere: while next to nothing that it does is new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sampling/remote_reads.h"

/* Samples a second of the programs that are played here. */
#define RATE 1000u

/* A program's stack at its so many-th sample: whether it is new. */
typedef bool program_is_new(unsigned int sample);

/* Takes some samples of it; how many of them on the thread's CPU. */
static unsigned int take(struct remote_reads *reads, program_is_new *is_new, unsigned int from, unsigned int to)
{
	unsigned int taken = 0;

	for (unsigned int i = from; i < to; i++) {
		const bool is_glanced_at = remote_reads_next(reads, i * (1000000000ull / RATE));

		if (is_glanced_at && !is_new(i)) {
			remote_reads_found(reads);
			continue;
		}
		taken++;
		remote_reads_taken(reads, !is_new(i), is_glanced_at);
	}
	return taken;
}

static bool is_never_new(unsigned int sample)
{
	(void)sample;
	return false;
}

static bool is_ever_new(unsigned int sample)
{
	return sample % 100 == 0;
}

/* Something new for a tenth of a second, each five. */
static bool is_rarely_new(unsigned int sample)
{
	return sample % (5 * RATE) < RATE / 10;
}

static void test_nothing_is_new(void **state)
{
	struct remote_reads reads;

	(void)state;
	remote_reads_init(&reads);
	assert_int_equal(take(&reads, is_never_new, 0, 256), 256);
	/* One sample in 64 is taken without a glance, whatever came of it. */
	assert_in_range(take(&reads, is_never_new, 256, 64256), 998, 1002);
}

static void test_samples_without_a_glance_have_time_between_them(void **state)
{
	struct remote_reads reads;
	unsigned int taken = 0;

	(void)state;
	remote_reads_init(&reads);
	assert_int_equal(take(&reads, is_never_new, 0, 256), 256);
	for (unsigned int i = 0; i < 100000; i++)
		taken += !remote_reads_next(&reads, 1000000000ull + i * 10000ull);
	/* In a second, at a hundred thousand of them. */
	assert_in_range(taken, 14, 17);
}

static void test_something_is_ever_new(void **state)
{
	struct remote_reads reads;

	(void)state;
	remote_reads_init(&reads);
	assert_int_equal(take(&reads, is_ever_new, 0, 100000), 100000);
}

/* However long nothing was new: within some seconds, while one sample in a hundred is. */
static void test_noticed(void **state)
{
	static const unsigned int histories[] = {300, 10000, 10000000};

	(void)state;
	for (size_t i = 0; i < sizeof(histories) / sizeof(histories[0]); i++) {
		const unsigned int from = histories[i], then = from + 10 * RATE;
		struct remote_reads reads;

		remote_reads_init(&reads);
		take(&reads, is_never_new, 0, from);
		take(&reads, is_ever_new, from, then);
		assert_int_equal(take(&reads, is_ever_new, then, then + 10 * RATE), 10 * RATE);
	}
}

static void test_rarely_new_does_not_keep_it_on_the_threads_cpu(void **state)
{
	struct remote_reads reads;
	unsigned int taken;

	(void)state;
	remote_reads_init(&reads);
	taken = take(&reads, is_rarely_new, 0, 500000);
	assert_in_range(taken, 10000, 100000);
}

/* Once a program that had ever new stacks has none, it comes down to what was wanted at first. */
static void test_comes_down_again(void **state)
{
	struct remote_reads reads;

	(void)state;
	remote_reads_init(&reads);
	for (unsigned int i = 0; i < 1000000; i += 10000) {
		take(&reads, is_never_new, i, i + 9000);
		take(&reads, is_ever_new, i + 9000, i + 10000);
	}
	assert_true(reads.wanted_in_a_row > 256);
	take(&reads, is_never_new, 0, 50000);
	assert_int_equal(reads.wanted_in_a_row, 256);
	assert_in_range(reads.in_a_row, 256, 256 + 64);
}

static void test_all_is_forgotten(void **state)
{
	struct remote_reads reads;

	(void)state;
	remote_reads_init(&reads);
	take(&reads, is_never_new, 0, 1000);
	remote_reads_forget(&reads);
	assert_int_equal(take(&reads, is_never_new, 1000, 1256), 256);
	assert_in_range(take(&reads, is_never_new, 1256, 2256), 14, 17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nothing_is_new),
	    cmocka_unit_test(test_samples_without_a_glance_have_time_between_them),
	    cmocka_unit_test(test_something_is_ever_new),
	    cmocka_unit_test(test_noticed),
	    cmocka_unit_test(test_rarely_new_does_not_keep_it_on_the_threads_cpu),
	    cmocka_unit_test(test_comes_down_again),
	    cmocka_unit_test(test_all_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
