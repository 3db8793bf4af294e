/* Time lines of threads whose stack is copied only now and then: each place gets its share of the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "given_time_line.h"

/*
 * A thread that waits for 10 ms now and then, and often for 0.1 ms, with another stack: if few waits are copied, and
 * pieces are taken each 200 ms, each stack still gets its share of all time.
 */
static void test_waits_by_chance(void **state)
{
	uint64_t at_ns = 100 * MS, taken_ns = at_ns, random = 99, found[2] = {0}, none = 0, all[2] = {0};
	struct time_line line;
	uint32_t slot[2];
	double wanted, share;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	slot[0] = time_slots_take(&line_slots);
	slot[1] = time_slots_take(&line_slots);
	for (int i = 0; i < 200000; i++) {
		const int which = i % 50 != 0;
		const uint64_t length = which ? MS / 10 : 10 * MS;

		random = random * 6364136223846793005u + 1442695040888963407u;
		time_line_out(&line, at_ns, SAMPLE_BLOCKED, 0,
			      random >> 33 < (1u << 31) / 25 ? time_slots_hold(&line_slots, slot[which]) : TIME_NONE);
		at_ns += length;
		all[which] += length;
		time_line_in(&line, at_ns, 0, (struct time_waker){0});
		if (at_ns - taken_ns < 200 * MS)
			continue;
		taken_ns = at_ns;
		time_line_resolve(&line);
		found[0] += line_time(&line, SAMPLE_BLOCKED, slot[0]);
		found[1] += line_time(&line, SAMPLE_BLOCKED, slot[1]);
		none += line_time(&line, SAMPLE_BLOCKED, TIME_NONE);
		time_line_taken(&line);
	}
	wanted = (double)all[0] / (double)(all[0] + all[1]);
	share = (double)found[0] / (double)(found[0] + found[1]);
	assert_true(share > wanted - 0.01 && share < wanted + 0.01);
	/* Before the first wait of a kind was copied, there is none to pick. */
	assert_true(none < (all[0] + all[1]) / 100);
	time_slots_release(&line_slots, slot[0]);
	time_slots_release(&line_slots, slot[1]);
	line_end(&line);
}

/*
 * A thread that uses hardly any CPU time is preempted at two places, at one of them for three times as long. If few of
 * these waits for a CPU are copied, each place still gets its share, whatever the stacks of the clock are.
 */
static void test_preempted_by_chance(void **state)
{
	uint64_t at_ns = 100 * MS, taken_ns = at_ns, random = 5, found[2] = {0}, other = 0;
	struct time_line line;
	uint32_t slot[2], clock;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	slot[0] = time_slots_take(&line_slots);
	slot[1] = time_slots_take(&line_slots);
	clock = time_slots_take(&line_slots);
	for (int i = 0; i < 100000; i++) {
		const int which = i % 2;

		random = random * 6364136223846793005u + 1442695040888963407u;
		at_ns += MS / 100;
		if (i % 1000 == 999)
			time_line_clock(&line, at_ns - MS / 200, time_slots_hold(&line_slots, clock), SAMPLE_CPU);
		time_line_out(&line, at_ns, SAMPLE_RUNNABLE, -1,
			      random >> 33 < (1u << 31) / 20 ? time_slots_hold(&line_slots, slot[which]) : TIME_NONE);
		at_ns += which ? 3 * MS : MS;
		time_line_in(&line, at_ns, 0, (struct time_waker){0});
		if (at_ns - taken_ns < 200 * MS)
			continue;
		taken_ns = at_ns;
		time_line_resolve(&line);
		found[0] += line_time(&line, SAMPLE_RUNNABLE, slot[0]);
		found[1] += line_time(&line, SAMPLE_RUNNABLE, slot[1]);
		other += line_time(&line, SAMPLE_RUNNABLE, clock) + line_time(&line, SAMPLE_RUNNABLE, TIME_NONE);
		time_line_taken(&line);
	}
	assert_true(found[1] > 2.9 * (double)found[0] && found[1] < 3.1 * (double)found[0]);
	assert_true(other < (found[0] + found[1]) / 100);
	time_slots_release(&line_slots, slot[0]);
	time_slots_release(&line_slots, slot[1]);
	time_slots_release(&line_slots, clock);
	line_end(&line);
}

/* A thread that was preempted for 1 ms, and for 400 ms; each of these waits has a stack. It runs again at 504 ms. */
static void begin_preempted(struct time_line *line, uint32_t *brief, uint32_t *lasting, uint32_t *clock)
{
	line_begin(line, SAMPLE_CPU);
	*clock = time_slots_take(&line_slots);
	*brief = time_slots_take(&line_slots);
	*lasting = time_slots_take(&line_slots);
	time_line_clock(line, 101 * MS, *clock, SAMPLE_CPU);
	time_line_out(line, 102 * MS, SAMPLE_RUNNABLE, -1, *brief);
	time_line_in(line, 103 * MS, 0, (struct time_waker){0});
	time_line_out(line, 104 * MS, SAMPLE_RUNNABLE, -1, *lasting);
	time_line_in(line, 504 * MS, 0, (struct time_waker){0});
}

/* If pieces are taken meanwhile, each has the stack of a wait that was as long as this one is by then. */
static void test_preempted_in_pieces(void **state)
{
	uint32_t brief, lasting, clock;
	struct time_line line;

	(void)state;
	begin_preempted(&line, &brief, &lasting, &clock);
	time_line_out(&line, 505 * MS, SAMPLE_RUNNABLE, -1, TIME_NONE);
	line_resolve(&line, 507 * MS);
	assert_int_equal(line_time(&line, SAMPLE_RUNNABLE, brief), 1 * MS + 2 * MS);
	time_line_taken(&line);
	time_line_in(&line, 905 * MS, 0, (struct time_waker){0});
	time_line_resolve(&line);
	assert_int_equal(line_time(&line, SAMPLE_RUNNABLE, lasting), 398 * MS);
	assert_true(line.pieces[0].estimated);
	line_end(&line);
}

/* The same if records were lost meanwhile. */
static void test_preempted_and_lost(void **state)
{
	uint32_t brief, lasting, clock;
	struct time_line line;

	(void)state;
	begin_preempted(&line, &brief, &lasting, &clock);
	time_line_out(&line, 505 * MS, SAMPLE_RUNNABLE, -1, TIME_NONE);
	time_line_lose(&line, 600 * MS);
	time_line_in(&line, 905 * MS, 0, (struct time_waker){0});
	line_resolve(&line, 905 * MS);
	assert_int_equal(line_time(&line, SAMPLE_RUNNABLE, lasting), 400 * MS + 305 * MS);
	line_end(&line);
}

/* The stack of a thread that was preempted is not one of its CPU time. */
static void test_preempted_is_no_cpu_time(void **state)
{
	struct time_line line;
	uint32_t slot;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	slot = time_slots_take(&line_slots);
	time_line_out(&line, 110 * MS, SAMPLE_RUNNABLE, -1, slot);
	line_resolve(&line, 120 * MS);
	assert_int_equal(line_time(&line, SAMPLE_RUNNABLE, slot), 10 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, TIME_NONE), 10 * MS);
	time_line_taken(&line);
	time_line_in(&line, 130 * MS, 0, (struct time_waker){0});
	time_line_until(&line, 140 * MS);
	time_line_resolve(&line);
	assert_int_equal(line_time(&line, SAMPLE_CPU, slot), 0);
	line_end(&line);
}

/* Many waits for a CPU do not drive out the stack of a rare wait for something else. */
static void test_rare_wait(void **state)
{
	uint64_t at_ns = 110 * MS, length = 1;
	struct time_line line;
	uint32_t rare;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	rare = time_slots_take(&line_slots);
	time_line_out(&line, at_ns, SAMPLE_SLEEPING, -1, rare);
	time_line_in(&line, at_ns += 7 * MS, 0, (struct time_waker){0});
	for (int i = 0; i < 500; i++) {
		length = length * 2 % (50 * MS) + 1;
		time_line_out(&line, at_ns += MS / 10, SAMPLE_RUNNABLE, -1, time_slots_take(&line_slots));
		time_line_in(&line, at_ns += length, 0, (struct time_waker){0});
	}
	time_line_out(&line, at_ns += MS, SAMPLE_SLEEPING, -1, TIME_NONE);
	time_line_in(&line, at_ns += 7 * MS, 0, (struct time_waker){0});
	line_resolve(&line, at_ns);
	assert_int_equal(line_time(&line, SAMPLE_SLEEPING, rare), 14 * MS);
	line_end(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_waits_by_chance),	     cmocka_unit_test(test_preempted_by_chance),
	    cmocka_unit_test(test_preempted_in_pieces),	     cmocka_unit_test(test_preempted_and_lost),
	    cmocka_unit_test(test_preempted_is_no_cpu_time), cmocka_unit_test(test_rare_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
