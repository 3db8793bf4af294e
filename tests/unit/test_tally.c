/* What is counted of samples, and of what the checks say of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "experiment/counts.h"
#include "experiment/modes.h"
#include "experiment/tally.h"

static int64_t count_of(const json_t *counts, const char *key)
{
	return json_integer_value(json_object_get(counts, key));
}

static void assert_near(double value, double expected)
{
	if (fabs(value - expected) > 0.01 * expected)
		fail_msg("%.12g is not %.12g", value, expected);
}

static int set_up(void **state)
{
	static struct tally tally;

	assert_true(tally_init(&tally));
	*state = &tally;
	return 0;
}

static int tear_down(void **state)
{
	tally_clear(*state);
	return 0;
}

/* Verdicts of an oracle are those of accepted samples, and only where there is one. */
static void test_samples(void **state)
{
	struct tally *tally = *state;
	const struct sample sample = {.source = &source_unpaused, .effort.tries = 1, .effort.took_us = 10};
	struct trace_frame frames[] = {
	    {.kind = TRACE_RUBY, .name = "A#a", .has_line = true},
	    {.kind = TRACE_CFUNC, .name = "Array#each"},
	    {.kind = TRACE_RUBY, .name = "<main>", .has_line = true},
	};
	const struct trace_thread none = {0}, good = {.frames = frames, .nr_frames = 3};
	const struct trace_thread moved = {.verdict = VERDICT_TORN, .reason = REASON_MOVED};
	const struct trace_thread deep = {.verdict = VERDICT_TRUNCATED, .reason = REASON_TOO_DEEP};

	for (int i = 0; i < 4; i++)
		tally_sample(tally, &sample, &good, true, ORACLE_LEGAL);
	tally_sample(tally, &sample, &good, true, ORACLE_EDGE);
	tally_sample(tally, &sample, &good, true, ORACLE_EDGE);
	tally_sample(tally, &sample, &good, true, ORACLE_LINE);
	tally_sample(tally, &sample, &none, true, ORACLE_ROOT);
	assert_int_equal(tally->judged, 8);
	assert_int_equal(tally_impossible(tally), 4);
	tally_sample(tally, &sample, &moved, true, ORACLE_EDGE);
	tally_sample(tally, &sample, &moved, true, ORACLE_LEGAL);
	tally_sample(tally, &sample, &deep, true, ORACLE_UNKNOWN);
	tally_sample(tally, &sample, &good, false, ORACLE_EDGE);
	assert_int_equal(tally->samples, 12);
	assert_int_equal(tally->accepted, 9);
	assert_int_equal(json_object_size(tally->rejected), 2);
	assert_int_equal(count_of(tally->rejected, "moved"), 2);
	assert_int_equal(count_of(tally->rejected, validate_reason_name(REASON_TOO_DEEP)), 1);
	assert_int_equal(tally->judged, 8);
	assert_int_equal(tally_impossible(tally), 4);
	assert_int_equal(tally->impossible[ORACLE_LEGAL], 0);
	assert_int_equal(tally->impossible[ORACLE_UNKNOWN], 0);
	assert_int_equal(tally->impossible[ORACLE_ROOT], 1);
	assert_int_equal(tally->impossible[ORACLE_EDGE], 2);
	assert_int_equal(tally->impossible[ORACLE_LINE], 1);
	assert_int_equal(json_object_size(tally->depths), 2);
	assert_int_equal(count_of(tally->depths, "3"), 8);
	assert_int_equal(count_of(tally->depths, "0"), 1);
	assert_int_equal(json_object_size(tally->leaves), 1);
	assert_int_equal(count_of(tally->leaves, "A#a"), 8);
	assert_int_equal(json_object_size(tally->soft), 0);
	/* A frame of Ruby code without a line is remarked on, and accepted. */
	frames[2].has_line = false;
	tally_sample(tally, &sample, &good, false, ORACLE_LEGAL);
	assert_int_equal(tally->accepted, 10);
	assert_int_equal(count_of(tally->soft, "pc-outside"), 1);
	/* These are a block's. */
	assert_int_equal(tally->late, 0);
	assert_int_equal(tally->dropped, 0);
}

static void test_tries_and_steps(void **state)
{
	struct tally *tally = *state;
	const struct trace_thread thread = {0};
	struct sample sample = {.source = &source_paused, .effort.tries = 1, .effort.took_us = 1, .stop.pause_us = 1};

	tally_sample(tally, &sample, &thread, false, ORACLE_LEGAL);
	sample.effort.tries = 4;
	sample.effort.retried[REASON_MOVED] = 2;
	sample.effort.retried[REASON_WINDOW] = 1;
	sample.stop.steps = 30;
	sample.stop.step_us = 60;
	tally_sample(tally, &sample, &thread, false, ORACLE_LEGAL);
	sample = (struct sample){
	    .source = &source_paused, .effort.tries = 2, .stop.steps = 7, .stop.step_us = 14, .effort.off_cpu = true};
	sample.effort.retried[REASON_MOVED] = 1;
	tally_sample(tally, &sample, &thread, false, ORACLE_LEGAL);
	assert_int_equal(tally->tries, 7);
	assert_int_equal(tally->max_tries, 4);
	assert_int_equal(json_object_size(tally->retried), 2);
	assert_int_equal(count_of(tally->retried, "moved"), 3);
	assert_int_equal(count_of(tally->retried, "window"), 1);
	assert_int_equal(tally->stepped, 2);
	assert_int_equal(tally->steps, 37);
	assert_int_equal(tally->max_steps, 30);
	assert_true(tally->step_us == 74);
	assert_int_equal(tally->off_cpu, 1);
}

/* All samples take their time, and those that stop the thread make a pause: rejected or not. */
static void test_times(void **state)
{
	struct tally *tally = *state;
	const struct trace_thread good = {0}, torn = {.verdict = VERDICT_TORN, .reason = REASON_WINDOW};

	for (int mode = 0; mode < MODES; mode++) {
		const struct sample sample = {
		    .source = mode_source((enum mode)mode), .effort.took_us = 5000, .stop.pause_us = 2000};

		if (sample.source && !sample.source->pauses)
			tally_sample(tally, &sample, &good, false, ORACLE_LEGAL);
	}
	assert_int_equal(distribution_count(tally->pause), 0);
	assert_int_equal(distribution_count(tally->took), 5);
	tally_clear(tally);
	assert_true(tally_init(tally));
	/* In any order: 617 and 1000 have no common divisor. */
	for (int i = 0; i < 1000; i++) {
		int value = i * 617 % 1000 + 1;
		const struct sample sample = {.source = mode_source(i % 2 ? MODE_PAUSED : MODE_PAUSED_NAIVE),
					      .effort.took_us = value * 10.0,
					      .stop.pause_us = value};

		tally_sample(tally, &sample, i % 3 ? &good : &torn, false, ORACLE_LEGAL);
	}
	assert_int_equal(distribution_count(tally->pause), 1000);
	assert_near(distribution_quantile(tally->pause, 0.5), 500);
	assert_near(distribution_quantile(tally->pause, 0.9), 900);
	assert_near(distribution_quantile(tally->pause, 0.99), 990);
	assert_true(distribution_max(tally->pause) == 1000);
	assert_near(distribution_quantile(tally->took, 0.5), 5000);
	assert_near(distribution_quantile(tally->took, 0.99), 9900);
	assert_true(distribution_max(tally->took) == 10000);
}

/* A target with endlessly many names: none is lost, and those that are there go on. */
static void test_many_keys(void **state)
{
	struct tally *tally = *state;
	char key[32];
	int64_t sum = 0;
	size_t size;

	for (int i = 0; i < 50000; i++) {
		snprintf(key, sizeof(key), "m%d", i);
		counts_add(tally->leaves, key);
	}
	size = json_object_size(tally->leaves);
	assert_in_range(size, 1000, 49999);
	assert_int_equal(count_of(tally->leaves, "(others)"), 50000 - (int64_t)(size - 1));
	counts_add(tally->leaves, "m0");
	assert_int_equal(count_of(tally->leaves, "m0"), 2);
	counts_add(tally->leaves, "m49999");
	assert_int_equal(json_object_size(tally->leaves), size);
	for (void *at = json_object_iter(tally->leaves); at; at = json_object_iter_next(tally->leaves, at))
		sum += json_integer_value(json_object_iter_value(at));
	assert_int_equal(sum, 50002);
}

/* Each class of what is known otherwise has counts of its own: those of class n differ from those of all others. */
static void test_witness(void **state)
{
	static const char *const names[TRUTHS] = {
	    [TRUTH_UNKNOWN] = "unknown",
	    [TRUTH_LEGAL] = "legal",
	    [TRUTH_IMPOSSIBLE] = "impossible",
	    [TRUTH_IN_WINDOW] = "in_window",
	};
	struct evaluation *evaluation = &((struct tally *)*state)->evaluation;
	json_t *object;

	for (int truth = 0; truth < TRUTHS; truth++) {
		const struct judgement testimonies[] = {
		    {REASON_NONE, CALL_SITE_UNDECIDED, CALL_SITE_AGREES},
		    {REASON_NONE, CALL_SITE_AGREES, CALL_SITE_CONTRADICTS},
		    {REASON_NONE, CALL_SITE_CONTRADICTS, CALL_SITE_CONTRADICTS},
		    /* What a call site says of a stack that is rejected anyway is not counted. */
		    {REASON_CFP_OUTSIDE, CALL_SITE_CONTRADICTS, CALL_SITE_CONTRADICTS},
		    {REASON_FRAME_KIND, CALL_SITE_AGREES, CALL_SITE_AGREES},
		};
		const int times[] = {1, 2, 4, 3, 1};

		for (size_t i = 0; i < sizeof(testimonies) / sizeof(testimonies[0]); i++)
			for (int n = 0; n < times[i] * (truth + 1); n++)
				evaluation_count(evaluation, &testimonies[i], (enum truth)truth);
	}
	object = evaluation_object(evaluation);
	assert_non_null(object);
	assert_int_equal(json_object_size(object), TRUTHS);
	for (int truth = 0; truth < TRUTHS; truth++) {
		const json_t *of = json_object_get(object, names[truth]), *rejected = json_object_get(of, "rejected");
		const json_t *call_site = json_object_get(of, "call_site");
		const json_t *innermost = json_object_get(call_site, "innermost");
		const json_t *any = json_object_get(call_site, "any");
		int scale = truth + 1;

		assert_int_equal(count_of(of, "accepted"), 7 * scale);
		assert_int_equal(json_object_size(rejected), 2);
		assert_int_equal(count_of(rejected, validate_reason_name(REASON_CFP_OUTSIDE)), 3 * scale);
		assert_int_equal(count_of(rejected, validate_reason_name(REASON_FRAME_KIND)), scale);
		assert_int_equal(count_of(innermost, "undecided"), scale);
		assert_int_equal(count_of(innermost, "agrees"), 2 * scale);
		assert_int_equal(count_of(innermost, "contradicts"), 4 * scale);
		assert_int_equal(count_of(any, "undecided"), 0);
		assert_int_equal(count_of(any, "agrees"), scale);
		assert_int_equal(count_of(any, "contradicts"), 6 * scale);
	}
	json_decref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_samples, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_tries_and_steps, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_times, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_many_keys, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_witness, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
