/* Time lines: no gap, no overlap, and each stack gets its time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "given_time_line.h"

/* Runs, is preempted, runs, waits, is woken, runs. */
static void test_states(void **state)
{
	struct time_line line;
	uint32_t clock, wait;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	clock = time_slots_take(&line_slots);
	wait = time_slots_take(&line_slots);
	time_line_clock(&line, 105 * MS, clock, SAMPLE_CPU);
	time_line_out(&line, 110 * MS, SAMPLE_RUNNABLE, -1, TIME_NONE);
	time_line_in(&line, 112 * MS, 0, (struct time_waker){0});
	time_line_out(&line, 113 * MS, SAMPLE_BLOCKED, 7, wait);
	time_line_in(&line, 140 * MS, 137 * MS, (struct time_waker){0});
	line_resolve(&line, 150 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, clock), 21 * MS);
	assert_int_equal(line_time(&line, SAMPLE_RUNNABLE, clock), 2 * MS);
	assert_int_equal(line_time(&line, SAMPLE_BLOCKED, wait), 24 * MS);
	assert_int_equal(line_time(&line, SAMPLE_RUNNABLE, wait), 3 * MS);
	line_end(&line);
}

/* A wait that is not over goes on in the next pieces. */
static void test_wait_that_is_not_over(void **state)
{
	struct time_line line;

	(void)state;
	line_begin(&line, SAMPLE_SLEEPING);
	assert_true(time_line_lacks_stack(&line, 101 * MS));
	assert_false(time_line_lacks_stack(&line, 100 * MS));
	time_line_found(&line, time_slots_take(&line_slots));
	assert_false(time_line_lacks_stack(&line, 101 * MS));
	line_resolve(&line, 300 * MS);
	assert_int_equal(line.nr_pieces, 1);
	assert_int_equal(line_time(&line, SAMPLE_SLEEPING, 0), 200 * MS);
	time_line_taken(&line);
	time_line_in(&line, 400 * MS, 0, (struct time_waker){0});
	assert_int_equal(line.nr_pieces, 1);
	assert_int_equal(line.pieces[0].start_ns, 300 * MS);
	assert_int_equal(line.pieces[0].slot, 0);
	line_end(&line);
}

/*
 * What could run after a wait has the stack of that wait; what ran before one, without an interrupt, that of the wait.
 */
static void test_neighbours(void **state)
{
	struct time_line line;
	uint32_t wait;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	wait = time_slots_take(&line_slots);
	time_line_out(&line, 101 * MS, SAMPLE_BLOCKED, 3, wait);
	time_line_in(&line, 105 * MS, 103 * MS, (struct time_waker){0});
	time_line_out(&line, 106 * MS, SAMPLE_BLOCKED, 3, TIME_NONE);
	time_line_in(&line, 110 * MS, 108 * MS, (struct time_waker){0});
	line_resolve(&line, 110 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, wait), 2 * MS);
	assert_int_equal(line_time(&line, SAMPLE_BLOCKED, wait), 4 * MS);
	assert_int_equal(line_time(&line, SAMPLE_RUNNABLE, wait), 4 * MS);
	line_end(&line);
}

/*
 * A piece on a CPU without an interrupt gets one of the stacks of the clock, also of the time before, unless they are
 * old.
 */
static void test_pieces_without_a_sample(void **state)
{
	struct time_line line;
	uint32_t first, second;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	first = time_slots_take(&line_slots);
	second = time_slots_take(&line_slots);
	time_line_clock(&line, 101 * MS, first, SAMPLE_GC);
	line_pause(&line, 102 * MS, 110 * MS);
	line_pause(&line, 111 * MS, 150 * MS);
	time_line_clock(&line, 152 * MS, second, SAMPLE_CPU);
	line_resolve(&line, 153 * MS);
	assert_in_range(line_time(&line, SAMPLE_GC, first), 1 * MS, 4 * MS);
	assert_in_range(line_time(&line, SAMPLE_CPU, second), 2 * MS, 5 * MS);
	assert_int_equal(line_time(&line, SAMPLE_GC, first) + line_time(&line, SAMPLE_CPU, second), 6 * MS);
	time_line_taken(&line);
	time_line_until(&line, 160 * MS);
	time_line_resolve(&line);
	assert_true(line.pieces[0].slot == first || line.pieces[0].slot == second);
	time_line_taken(&line);
	line_pause(&line, 170 * MS, 170 * MS + TIME_CLOCKS_NS);
	time_line_until(&line, 180 * MS + TIME_CLOCKS_NS);
	time_line_resolve(&line);
	assert_int_equal(line.nr_pieces, 3);
	assert_int_equal(line.pieces[2].slot, TIME_NONE);
	line_end(&line);
}

/*
 * A thread that runs for a moment again and again meets the clock now and then. What it runs has the stacks that it
 * met, each as often, and not the stacks of its waits.
 */
static void test_short_runs(void **state)
{
	uint64_t time_ns = 100 * MS, of_first = 0, of_second = 0;
	struct time_line line;
	uint32_t first, second;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	first = time_slots_take(&line_slots);
	second = time_slots_take(&line_slots);
	time_line_clock(&line, time_ns += MS, first, SAMPLE_CPU);
	line_pause(&line, time_ns, time_ns + MS);
	time_ns += MS;
	time_line_clock(&line, time_ns += MS, second, SAMPLE_CPU);
	for (int i = 0; i < 1000; i++) {
		time_line_resolve(&line);
		of_first += line_time(&line, SAMPLE_CPU, first);
		of_second += line_time(&line, SAMPLE_CPU, second);
		time_line_taken(&line);
		time_line_out(&line, time_ns += MS, SAMPLE_SLEEPING, -1, time_slots_take(&line_slots));
		time_line_in(&line, time_ns += MS, 0, (struct time_waker){0});
	}
	assert_int_equal(of_first + of_second, 1001 * MS);
	assert_in_range(of_first, 420 * MS, 580 * MS);
	line_end(&line);
}

/* A piece without an interrupt gets the nearest stack that has a claim left, be it before or after the piece. */
static void test_nearest_claims(void **state)
{
	struct time_line line;
	uint32_t slot[3];

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	for (int i = 0; i < 3; i++)
		slot[i] = time_slots_take(&line_slots);
	/* They have claims to 1, 6 and 6 ms. */
	time_line_clock(&line, 109 * MS, slot[0], SAMPLE_CPU);
	line_pause(&line, 110 * MS, 111 * MS);
	time_line_clock(&line, 115 * MS, slot[1], SAMPLE_CPU);
	line_pause(&line, 116 * MS, 140 * MS);
	line_pause(&line, 143 * MS, 200 * MS);
	line_pause(&line, 203 * MS, 206 * MS);
	time_line_clock(&line, 210 * MS, slot[2], SAMPLE_CPU);
	line_resolve(&line, 212 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, slot[0]), 10 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, slot[1]), 8 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, slot[2]), 9 * MS);
	for (size_t i = 0; i < line.nr_pieces; i++) {
		const uint64_t end_ns = line.pieces[i].end_ns;

		if (line.pieces[i].state == SAMPLE_CPU)
			assert_int_equal(line.pieces[i].estimated, end_ns == 110 * MS || end_ns == 116 * MS ||
								       end_ns == 143 * MS || end_ns == 203 * MS);
	}
	line_end(&line);
}

/* A piece that uses up several claims gets one of these stacks, each as often as it has a share of them. */
static void test_piece_of_several_claims(void **state)
{
	uint64_t of_first = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct time_line line;
		uint32_t first;

		line_begin(&line, SAMPLE_CPU);
		line_slots.random = (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
		first = time_slots_take(&line_slots);
		/* They have claims to 9 and 3 ms; the ends of their runs use up one of each. */
		time_line_clock(&line, 101 * MS, first, SAMPLE_CPU);
		line_pause(&line, 102 * MS, 110 * MS);
		time_line_clock(&line, 117 * MS, time_slots_take(&line_slots), SAMPLE_CPU);
		line_pause(&line, 118 * MS, 120 * MS);
		line_pause(&line, 130 * MS, 140 * MS);
		line_resolve(&line, 140 * MS);
		of_first += line_time(&line, SAMPLE_CPU, first) - 2 * MS;
		line_end(&line);
	}
	/* Eight tenths of 10 s. */
	assert_in_range(of_first, 7750 * MS, 8250 * MS);
}

/* A thread that runs on is not cut by when its pieces are taken: no stack is estimated, and each has its time. */
static void test_running_on(void **state)
{
	struct time_line line;
	uint64_t time_ns = 100 * MS, of_first = 0, of_second = 0;
	uint32_t first, second;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	first = time_slots_take(&line_slots);
	second = time_slots_take(&line_slots);
	time_line_clock(&line, time_ns, time_slots_hold(&line_slots, first), SAMPLE_CPU);
	for (int i = 0; i < 100; i++) {
		for (int hit = 0; hit < 10; hit++)
			time_line_clock(&line, time_ns += 10 * MS,
					time_slots_hold(&line_slots, i < 50 ? first : second),
					i < 50 ? SAMPLE_CPU : SAMPLE_GC);
		time_line_until(&line, time_ns += 4 * MS);
		time_line_resolve(&line);
		for (size_t k = 0; k < line.nr_pieces; k++)
			assert_false(line.pieces[k].estimated);
		of_first += line_time(&line, SAMPLE_CPU, first);
		of_second += line_time(&line, SAMPLE_GC, second);
		time_line_taken(&line);
	}
	assert_int_equal(of_first, 5200 * MS);
	assert_int_equal(of_second, 5200 * MS);
	time_line_clear(&line);
	time_slots_release(&line_slots, first);
	time_slots_release(&line_slots, second);
	assert_int_equal(line_slots.nr_free, TIME_SLOTS);
}

/* A thread that was preempted has its last stack, however often pieces are taken meanwhile. */
static void test_preempted_for_long(void **state)
{
	struct time_line line;
	uint32_t first, second;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	first = time_slots_take(&line_slots);
	second = time_slots_take(&line_slots);
	time_line_clock(&line, 101 * MS, first, SAMPLE_CPU);
	time_line_clock(&line, 111 * MS, second, SAMPLE_CPU);
	time_line_out(&line, 111 * MS, SAMPLE_RUNNABLE, -1, TIME_NONE);
	line_resolve(&line, 120 * MS);
	time_line_taken(&line);
	for (int i = 1; i <= 50; i++) {
		time_line_until(&line, 120 * MS + (uint64_t)i * MS);
		time_line_resolve(&line);
		assert_int_equal(line_time(&line, SAMPLE_RUNNABLE, second), MS);
		assert_false(line.pieces[0].estimated);
		time_line_taken(&line);
	}
	line_end(&line);
}

/* A stack that was copied at the end of a run, or after a loss, has no claim, but the thread runs on with it. */
static void test_stacks_without_claims(void **state)
{
	struct time_line line;
	uint32_t clock, early, after_loss;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	clock = time_slots_take(&line_slots);
	early = time_slots_take(&line_slots);
	after_loss = time_slots_take(&line_slots);
	time_line_clock(&line, 101 * MS, clock, SAMPLE_CPU);
	line_pause(&line, 102 * MS, 110 * MS);
	time_line_clock(&line, 112 * MS, early, SAMPLE_CPU);
	line_pause(&line, 112 * MS, 120 * MS);
	line_pause(&line, 124 * MS, 130 * MS);
	time_line_lose(&line, 140 * MS);
	time_line_clock(&line, 140 * MS, after_loss, SAMPLE_GC);
	line_resolve(&line, 145 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, clock), 6 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, early), 2 * MS);
	assert_int_equal(line_time(&line, SAMPLE_GC, after_loss), 5 * MS);
	assert_false(line.pieces[line.nr_pieces - 1].estimated);
	line_end(&line);
}

/* The time from the last interrupt to the end of a thread is estimated. */
static void test_end_of_a_thread(void **state)
{
	struct time_line line;
	uint32_t clock;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	clock = time_slots_take(&line_slots);
	time_line_clock(&line, 105 * MS, clock, SAMPLE_CPU);
	time_line_end(&line, 109 * MS);
	line_resolve(&line, 109 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, clock), 9 * MS);
	assert_false(line.pieces[0].estimated);
	assert_true(line.pieces[1].estimated);
	line_end(&line);
}

/*
 * Runs for a while. The clock interrupts about each 10 ms of CPU time; the stack then is one of `slot`, taken anew each
 * time.
 */
static uint64_t run_for(struct time_line *line, uint64_t time_ns, uint64_t for_ns, uint64_t *cpu_ns, uint32_t slot)
{
	const uint64_t end_ns = time_ns + for_ns, first_ns = *cpu_ns;

	for (uint64_t hit = first_ns / (10 * MS) + 1; hit * 10 * MS <= first_ns + for_ns; hit++)
		/* Interrupts are up to 20 us late. */
		time_line_clock(line, time_ns + hit * 10 * MS - first_ns + hit * 7919 % 20000,
				time_slots_hold(&line_slots, slot), SAMPLE_CPU);
	*cpu_ns += for_ns;
	return end_ns;
}

/* Two places get the CPU time that is spent there, though one is always so short that the clock seldom meets it. */
static void test_long_and_short_runs(void **state)
{
	uint64_t time_ns = 100 * MS, cpu_ns = 0, of_long = 0, of_short = 0;
	struct time_line line;
	uint32_t is_long, is_short;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	is_long = time_slots_take(&line_slots);
	is_short = time_slots_take(&line_slots);
	for (int i = 0; i < 2000; i++) {
		time_ns = run_for(&line, time_ns, 33 * MS + 370001, &cpu_ns, is_long);
		line_pause(&line, time_ns, time_ns + 5 * MS);
		time_ns += 5 * MS;
		time_ns = run_for(&line, time_ns, 3 * MS + 110003, &cpu_ns, is_short);
		line_pause(&line, time_ns, time_ns + 5 * MS);
		time_ns += 5 * MS;
		if (i % 5 != 4)
			continue;
		time_line_until(&line, time_ns);
		time_line_resolve(&line);
		of_long += line_time(&line, SAMPLE_CPU, is_long);
		of_short += line_time(&line, SAMPLE_CPU, is_short);
		time_line_taken(&line);
	}
	assert_in_range(of_long + of_short, 72900 * MS, 73000 * MS);
	/* 3.11 of 36.48 ms. */
	assert_in_range(1000 * of_short / (of_long + of_short), 77, 94);
	time_line_clear(&line);
	time_slots_release(&line_slots, is_long);
	time_slots_release(&line_slots, is_short);
	assert_int_equal(line_slots.nr_free, TIME_SLOTS);
}

/* What a new thread runs before and after a wait has the stack of that, if it has met no interrupt. */
static void test_new_thread(void **state)
{
	struct time_line line;
	uint32_t wait;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	wait = time_slots_take(&line_slots);
	time_line_out(&line, 101 * MS, SAMPLE_RUNNABLE, -1, TIME_NONE);
	time_line_in(&line, 102 * MS, 0, (struct time_waker){0});
	time_line_out(&line, 103 * MS, SAMPLE_SLEEPING, -1, wait);
	time_line_in(&line, 107 * MS, 0, (struct time_waker){0});
	line_resolve(&line, 108 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, wait), 3 * MS);
	assert_int_equal(line_time(&line, SAMPLE_RUNNABLE, wait), 1 * MS);
	assert_int_equal(line_time(&line, SAMPLE_SLEEPING, wait), 4 * MS);
	line_end(&line);
}

/* An interrupt shows that a thread is on a CPU, whatever records were lost; a look corrects what no record has told. */
static void test_lost_records(void **state)
{
	struct time_line line;
	uint32_t clock;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	clock = time_slots_take(&line_slots);
	time_line_in(&line, 105 * MS, 0, (struct time_waker){0});
	time_line_out(&line, 110 * MS, SAMPLE_BLOCKED, 0, TIME_NONE);
	time_line_clock(&line, 120 * MS, clock, SAMPLE_CPU);
	time_line_until(&line, 124 * MS);
	time_line_correct(&line, 125 * MS, SAMPLE_SLEEPING, -1, 0);
	time_line_correct(&line, 126 * MS, SAMPLE_SLEEPING, -1, 0);
	time_line_until(&line, 130 * MS);
	time_line_correct(&line, 130 * MS, SAMPLE_CPU, -1, 0);
	line_resolve(&line, 132 * MS);
	assert_int_equal(line_time(&line, SAMPLE_BLOCKED, TIME_NONE), 10 * MS);
	assert_int_equal(line_time(&line, SAMPLE_SLEEPING, TIME_NONE), 5 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, clock), 17 * MS);
	line_end(&line);
}

/*
 * After a loss, a wait is known to be another one by when it began: then it has another state, and can be given a
 * stack.
 */
static void test_lost_waits(void **state)
{
	struct time_line line;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	time_line_out(&line, 105 * MS, SAMPLE_BLOCKED, 0, TIME_NONE);
	time_line_lose(&line, 120 * MS);
	time_line_correct(&line, 120 * MS, SAMPLE_BLOCKED, 0, 105 * MS);
	assert_int_equal(line.began_ns, 105 * MS);
	time_line_lose(&line, 130 * MS);
	time_line_correct(&line, 130 * MS, SAMPLE_SLEEPING, -1, 128 * MS);
	assert_int_equal(line.began_ns, 128 * MS);
	assert_true(time_line_lacks_stack(&line, 129 * MS));
	line_resolve(&line, 140 * MS);
	assert_int_equal(line_time(&line, SAMPLE_SLEEPING, TIME_NONE), 10 * MS);
	line_end(&line);
}

/*
 * The time before a record that says that others were lost has no stack, and a wait of that time stands for no other.
 */
static void test_lost_time(void **state)
{
	struct time_line line;
	uint32_t clock, wait;

	(void)state;
	line_begin(&line, SAMPLE_CPU);
	clock = time_slots_take(&line_slots);
	wait = time_slots_take(&line_slots);
	time_line_clock(&line, 110 * MS, clock, SAMPLE_CPU);
	time_line_lose(&line, 125 * MS);
	time_line_out(&line, 125 * MS, SAMPLE_BLOCKED, 0, wait);
	time_line_lose(&line, 145 * MS);
	time_line_in(&line, 145 * MS, 0, (struct time_waker){0});
	time_line_out(&line, 150 * MS, SAMPLE_BLOCKED, 0, TIME_NONE);
	line_resolve(&line, 160 * MS);
	for (size_t i = 0; i < line.nr_pieces; i++)
		assert_int_equal(line.pieces[i].lost,
				 line.pieces[i].end_ns == 125 * MS || line.pieces[i].end_ns == 145 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, clock), 15 * MS);
	assert_int_equal(line_time(&line, SAMPLE_CPU, TIME_NONE), 15 * MS);
	assert_int_equal(line_time(&line, SAMPLE_BLOCKED, TIME_NONE), 30 * MS);
	line_end(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_states),
	    cmocka_unit_test(test_wait_that_is_not_over),
	    cmocka_unit_test(test_neighbours),
	    cmocka_unit_test(test_pieces_without_a_sample),
	    cmocka_unit_test(test_short_runs),
	    cmocka_unit_test(test_nearest_claims),
	    cmocka_unit_test(test_piece_of_several_claims),
	    cmocka_unit_test(test_running_on),
	    cmocka_unit_test(test_preempted_for_long),
	    cmocka_unit_test(test_stacks_without_claims),
	    cmocka_unit_test(test_end_of_a_thread),
	    cmocka_unit_test(test_long_and_short_runs),
	    cmocka_unit_test(test_new_thread),
	    cmocka_unit_test(test_lost_records),
	    cmocka_unit_test(test_lost_waits),
	    cmocka_unit_test(test_lost_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
