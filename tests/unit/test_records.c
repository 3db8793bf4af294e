/*
 * Single records of a recording: whether each kind of record is read or ends what is read, and what the profile then has.
 * Many of the records are ones that only somebody who means harm writes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "recording/format.h"
#include "synthetic_recording.h"

/*
 * Whether one more record is read, after all that is above: if it is not, that is the end of what is read, and what was
 * before it is there.
 */
static bool takes(char record, const char *fields, ...)
{
	struct byte_buffer records = {0};
	struct recording_state state;
	struct profile *profile;
	va_list values;
	bool taken;

	say_head(&records);
	say_all(&records);
	va_start(values, fields);
	say_list(&records, record, fields, values);
	va_end(values);
	say(&records, RECORD_FINISH, "n", N(1000));
	profile = read_records(&records, &state);
	taken = state.finished;
	assert_int_equal(profile->cut, !taken);
	if (taken)
		assert_null(state.damage);
	else
		assert_string_equal(state.damage, no_such_thing);
	assert_int_equal(profile->nr_processes >= 1 && profile->nr_threads >= 2 && profile->nr_spans >= 1, 1);
	assert_true(profile->duration_ns == (taken ? 1000000 : 0) || profile->duration_ns > 1000000);
	assert_string_equal(profile->functions[profile->frames[profile->nodes[2].frame].function].name, "sleep");
	free(state.damage);
	profile_destroy(profile);
	bytes_clear(&records);
	return taken;
}

static const uint64_t time_max = UINT64_C(1) << 53;

static void test_processes(void **state)
{
	(void)state;
	assert_true(takes(RECORD_PROCESS, "nnnnnsss", N(1), N(5), N(1), N(6), N(7), "ruby", NULL, NULL));
	assert_true(
	    takes(RECORD_PROCESS, "nnnnnssss", N(1), N(5), N(1), N(6), N(7), "ruby", NULL, NULL, "3.4.0 3.4.4"));
	assert_true(takes(RECORD_PROCESS, "nnnnnssss", N(1), N(5), N(1), N(6), N(7), "ruby", NULL, NULL, NULL));
	assert_true(takes(RECORD_PROCESS, "nnnnnsss", N((1 << 22) - 1), N(5), N(1), N(6), time_max, NULL, NULL, NULL));
	assert_false(takes(RECORD_PROCESS, "nnnnnsss", N(1 << 22), N(5), N(1), N(6), N(7), "ruby", NULL, NULL));
	assert_false(takes(RECORD_PROCESS, "nnnnnsss", UINT64_MAX, N(5), N(1), N(6), N(7), "ruby", NULL, NULL));
	assert_false(takes(RECORD_PROCESS, "nnnnnsss", N(1), N(5), N(1), N(6), time_max + 1, "ruby", NULL, NULL));
	assert_false(takes(RECORD_PROCESS, "nnnnnss", N(1), N(5), N(1), N(6), N(7), "ruby", NULL));
	assert_false(takes(RECORD_PROCESS, "nnnnnn", N(1), N(5), N(1), N(6), N(7), N(100)));
	assert_false(takes(RECORD_PROCESS, ""));
}

/* Nothing can be of a process that was not said. */
static void test_no_process(void **state)
{
	const uint64_t others[] = {1, 2, 1 << 22, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		uint64_t other = others[i];

		assert_false(takes(RECORD_THREAD, "nnnnbs", other, N(0), N(100), N(1), 1, NULL));
		assert_false(takes(RECORD_FUNCTION, "nbissss", other, 0, I(1), "main", "main", "a.rb", "/a.rb"));
		assert_false(takes(RECORD_FRAMES, "nni", other, N(0), I(3)));
		assert_false(takes(RECORD_NODES, "nnn", other, N(1), N(0)));
		assert_false(takes(RECORD_SPANS, "ninnnbn", other, I(10), N(0), N(5), N(1), 0, N(0)));
		assert_false(takes(RECORD_RESET, "n", other));
		assert_false(takes(RECORD_COUNTS, "nnnnnnnn", other, N(1), N(1), N(1), N(0), N(0), N(0), N(0)));
		assert_false(takes(RECORD_END, "nnbn", other, N(1), 1, N(0)));
	}
	for (const char *record = "TFLNRXCE"; *record; record++)
		assert_false(takes(*record, ""));
}

static void test_threads(void **state)
{
	(void)state;
	assert_true(takes(RECORD_THREAD, "nnnnbs", N(0), N(2), N(102), N(1), 0, NULL));
	assert_true(takes(RECORD_THREAD, "nnnnbs", N(0), N(1), N(102), N(1), 0, "renamed"));
	assert_false(takes(RECORD_THREAD, "nnnnbs", N(0), N(3), N(102), N(1), 0, NULL));
	assert_false(takes(RECORD_THREAD, "nnnnbs", N(0), UINT64_MAX, N(102), N(1), 0, NULL));
	assert_false(takes(RECORD_THREAD, "nnnnb", N(0), N(2), N(102), N(1), 0));
	assert_false(takes(RECORD_THREAD, "nnnn", N(0), N(2), N(102), N(1)));
}

static void test_functions(void **state)
{
	(void)state;
	assert_true(takes(RECORD_FUNCTION, "nbissss", N(0), PROFILE_MARK, INT64_MIN, "", "", "", ""));
	assert_true(takes(RECORD_FUNCTION, "nbissss", N(0), PROFILE_NATIVE, I(0), "m", "m", "a.so", NULL));
	assert_false(takes(RECORD_FUNCTION, "nbissss", N(0), PROFILE_NATIVE + 1, I(1), "m", "m", "a.rb", "/a.rb"));
	assert_false(takes(RECORD_FUNCTION, "nbissss", N(0), 0xff, I(1), "m", "m", "a.rb", "/a.rb"));
	assert_false(takes(RECORD_FUNCTION, "nbissss", N(0), PROFILE_RUBY, I(1), NULL, "m", "a.rb", "/a.rb"));
	assert_false(takes(RECORD_FUNCTION, "nbissss", N(0), PROFILE_RUBY, I(1), "m", NULL, "a.rb", "/a.rb"));
	assert_false(takes(RECORD_FUNCTION, "nbisss", N(0), PROFILE_RUBY, I(1), "m", "m", "a.rb"));
}

static void test_frames_and_nodes(void **state)
{
	(void)state;
	assert_true(takes(RECORD_FRAMES, "n", N(0)));
	assert_true(takes(RECORD_FRAMES, "nni", N(0), N(1), INT64_MIN));
	assert_false(takes(RECORD_FRAMES, "nni", N(0), N(2), I(3)));
	assert_false(takes(RECORD_FRAMES, "nni", N(0), UINT64_MAX, I(3)));
	assert_false(takes(RECORD_FRAMES, "nn", N(0), N(1)));
	assert_true(takes(RECORD_NODES, "n", N(0)));
	/* There are three: the root, and those of the stack. */
	assert_true(takes(RECORD_NODES, "nnn", N(0), N(3), N(1)));
	assert_false(takes(RECORD_NODES, "nnn", N(0), N(4), N(1)));
	assert_false(takes(RECORD_NODES, "nnn", N(0), UINT64_MAX, N(1)));
	assert_false(takes(RECORD_NODES, "nnn", N(0), N(0), N(1)));
	assert_false(takes(RECORD_NODES, "nnn", N(0), N(1), N(2)));
	assert_false(takes(RECORD_NODES, "nnn", N(0), N(1), UINT64_MAX));
	assert_false(takes(RECORD_NODES, "nn", N(0), N(1)));
}

static void test_spans(void **state)
{
	const uint64_t left = time_max - 15;

	(void)state;
	assert_true(takes(RECORD_SPANS, "n", N(0)));
	assert_true(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), UINT64_C(0xffffffff), 0x35, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(2), N(5), N(1), 0, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), UINT64_MAX, N(5), N(1), 0, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(0), 0, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), UINT64_C(1) << 32, 0, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), SAMPLE_STATES, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), 0x40, N(0)));
	assert_true(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), 0xb5, N(0)));
	/* There is no such waker. */
	assert_false(takes(RECORD_SPANS, "ninnnbnn", N(0), I(0), N(1), N(5), N(1), 0x40, N(0), N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbnn", N(0), I(0), N(1), N(5), N(1), 0x40, N(0), UINT64_MAX));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), 0, N(3)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), 0, UINT64_MAX));
	assert_false(takes(RECORD_SPANS, "ninnnb", N(0), I(0), N(1), N(5), N(1), 0));
	assert_true(takes(RECORD_SPANS, "ninnnbnn", N(0), I(0), N(1), N(5), N(1), SAMPLE_BLOCKED, N(0), N(1)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), SAMPLE_BLOCKED, N(0)));
	/* Times: the first thread's last span ends at 15. */
	assert_true(takes(RECORD_SPANS, "ninnnbn", N(0), I(-15), N(0), N(1), N(1), 0, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(-16), N(0), N(1), N(1), 0, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), INT64_MIN, N(0), N(1), N(1), 0, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), INT64_MAX, N(0), N(1), N(1), 0, N(0)));
	assert_true(takes(RECORD_SPANS, "ninnnbn", N(0), (int64_t)left, N(0), N(0), N(1), 0, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), (int64_t)left + 1, N(0), N(0), N(1), 0, N(0)));
	assert_true(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(0), left, N(1), 0, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(0), left + 1, N(1), 0, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(0), UINT64_MAX, N(1), 0, N(0)));
	/* The end of one that was refused is no beginning for the next. */
	assert_false(takes(RECORD_SPANS, "ninnnbninnnbn", N(0), I(0), N(0), time_max, N(1), 0, N(0), I(1), N(0),
			   time_max, N(1), 0, N(0)));
}

static void test_wakers(void **state)
{
	(void)state;
	assert_true(takes(RECORD_WAKER, "nnns", N(0), N(5), N(6), "ruby"));
	assert_true(takes(RECORD_WAKER, "nnns", N(0), UINT64_MAX, UINT64_MAX, NULL));
	assert_false(takes(RECORD_WAKER, "nnn", N(0), N(5), N(6)));
	assert_false(takes(RECORD_WAKER, "nnns", N(7), N(5), N(6), "ruby"));
}

static void test_ends(void **state)
{
	(void)state;
	assert_true(takes(RECORD_COUNTS, "nnnnnnnn", N(0), time_max, UINT64_MAX, N(1), N(0), N(0), N(0), N(0)));
	assert_false(takes(RECORD_COUNTS, "nnnnnnnn", N(0), time_max + 1, N(1), N(1), N(0), N(0), N(0), N(0)));
	assert_false(takes(RECORD_COUNTS, "nnnnnnn", N(0), N(1), N(1), N(1), N(0), N(0), N(0)));
	assert_true(takes(RECORD_END, "nnbn", N(0), N(1), 0, N(0)));
	assert_false(takes(RECORD_END, "nnbn", N(0), time_max + 1, 0, N(0)));
	assert_false(takes(RECORD_END, "nnb", N(0), N(1), 0));
	assert_false(takes(RECORD_FINISH, ""));
	assert_false(takes(RECORD_FINISH, "n", time_max + 1));
	/* There is one head. */
	assert_false(takes(RECORD_HEAD, "t",
			   "{\"tool\":\"t\",\"mode\":\"paused\",\"start_s\":1700000000,\"start_ns\":0,\"rate\":99}"));
	/* What a later rbdump writes besides is passed over; also behind what is known of a record. */
	assert_true(takes('q', "t", "anything"));
	assert_true(takes('\0', ""));
	assert_true(takes(RECORD_RESET, "nn", N(0), N(17)));
	assert_true(takes(RECORD_THREAD, "nnnnbsn", N(0), N(2), N(102), N(1), 0, NULL, N(17)));
}

/* After a reset nothing is left that could be referred to, but the root. */
static bool takes_after_reset(char record, const char *fields, ...)
{
	struct byte_buffer records = {0};
	struct recording_state state;
	struct profile *profile;
	va_list values;

	say_head(&records);
	say_all(&records);
	say(&records, RECORD_RESET, "n", N(0));
	say(&records, RECORD_THREAD, "nnnnbs", N(0), N(0), N(100), N(1), 1, NULL);
	va_start(values, fields);
	say_list(&records, record, fields, values);
	va_end(values);
	profile = read_records(&records, &state);
	/* It is who it was. */
	assert_int_equal(profile->nr_threads, 2);
	assert_true(profile->cut);
	if (state.damage)
		assert_string_equal(state.damage, no_such_thing);
	else
		assert_int_equal(profile->nr_spans, 2);
	profile_destroy(profile);
	bytes_clear(&records);
	free(state.damage);
	return profile && !state.damage;
}

static void test_reset(void **state)
{
	(void)state;
	assert_true(takes_after_reset(RECORD_SPANS, "ninnnbn", N(0), I(0), N(0), N(5), N(1), 0, N(0)));
	assert_false(takes_after_reset(RECORD_SPANS, "ninnnbn", N(0), I(0), N(0), N(5), N(1), 0, N(1)));
	assert_false(takes_after_reset(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), 0, N(0)));
	/* Times begin with 0 again. */
	assert_false(takes_after_reset(RECORD_SPANS, "ninnnbn", N(0), I(-1), N(0), N(5), N(1), 0, N(0)));
	assert_false(takes_after_reset(RECORD_FRAMES, "nni", N(0), N(0), I(3)));
	assert_false(takes_after_reset(RECORD_NODES, "nnn", N(0), N(1), N(0)));
}

/* Any bytes in a string come out as UTF-8 without NUL. */
static void test_bytes_of_strings(void **state)
{
	struct byte_buffer records = {0}, payload = {0};
	struct recording_state came;
	struct profile *profile;

	(void)state;
	say_head(&records);
	say_all(&records);
	for (uint64_t i = 0; i < 3; i++)
		bytes_add_number(&payload, i == 1 ? 2 : i == 2 ? 300 : 0);
	bytes_add_number(&payload, 1);
	bytes_add_byte(&payload, 0);
	bytes_add_number(&payload, 8);
	bytes_add(&payload, "a\0\xff\xed\xa0\x80z", 7);
	bytes_add_record(&records, RECORD_THREAD, &payload);
	profile = read_records(&records, &came);
	assert_null(came.damage);
	assert_int_equal(profile->nr_threads, 3);
	assert_string_equal(profile->threads[2].name, "a\\x00\\xFF\\xED\\xA0\\x80z");
	profile_destroy(profile);
	bytes_clear(&records);
	bytes_clear(&payload);
}

static void test_system_calls(void **state)
{
	static const struct {
		uint64_t said;
		int number;
	} calls[] = {{0, -1}, {1, 0}, {INT16_MAX, INT16_MAX - 1}, {INT16_MAX + 1, -1}, {UINT64_MAX, -1}};
	struct byte_buffer records = {0};
	struct recording_state came;
	struct profile *profile;
	size_t count = sizeof(calls) / sizeof(calls[0]);

	(void)state;
	say_head(&records);
	say_all(&records);
	for (size_t i = 0; i < count; i++)
		say(&records, RECORD_SPANS, "ninnnbnn", N(0), I(1), N(1), N(1), N(1), SAMPLE_BLOCKED, N(0),
		    calls[i].said);
	profile = read_records(&records, &came);
	assert_int_equal(profile->nr_spans, 1 + count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(profile->spans[1 + i].syscall, calls[i].number);
	profile_destroy(profile);
	bytes_clear(&records);
}

static void test_depth(void **state)
{
	struct byte_buffer records = {0}, payload = {0};
	struct recording_state came;
	struct profile *profile;

	(void)state;
	for (unsigned int more = 0; more < 2; more++) {
		records.length = payload.length = 0;
		say_head(&records);
		say_all(&records);
		bytes_add_number(&payload, 0);
		/* There are two above. */
		for (uint32_t i = 0; i < RECORDING_DEPTH_MAX - 2 + more; i++) {
			bytes_add_number(&payload, 1);
			bytes_add_number(&payload, 0);
		}
		bytes_add_record(&records, RECORD_NODES, &payload);
		profile = read_records(&records, &came);
		assert_int_equal(came.damage != NULL, more);
		assert_int_equal(profile->nr_nodes, RECORDING_DEPTH_MAX + 1);
		profile_destroy(profile);
		free(came.damage);
	}
	bytes_clear(&records);
	bytes_clear(&payload);
}

/* Many processes, many threads, the same said again and again: no more than in proportion to their number. */
static void test_crowds(void **state)
{
	enum { COUNT = 200000 };
	struct byte_buffer records = {0};
	struct recording_state came;
	struct profile *profile;
	struct timespec begin, end;
	char name[32];

	(void)state;
	say_head(&records);
	say_all(&records);
	for (uint64_t i = 1; i < COUNT; i++)
		say(&records, RECORD_PROCESS, "nnnnnsss", i, i, N(1), N(12345) + i, N(0), "ruby", NULL, NULL);
	for (uint64_t i = 2; i < COUNT; i++)
		say(&records, RECORD_THREAD, "nnnnbs", N(0), i, i % 2 ? i : 100, N(1), i % 2 == 0, NULL);
	for (uint64_t i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "%u", (unsigned int)i % 1000);
		say(&records, RECORD_THREAD, "nnnnbs", N(0), N(1), N(101), N(1), 0, name);
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		say(&records, RECORD_RESET, "n", N(0));
		say(&records, RECORD_THREAD, "nnnnbs", N(0), N(0), N(100), N(1), 1, NULL);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	profile = read_records(&records, &came);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_null(came.damage);
	assert_int_equal(profile->nr_processes, COUNT);
	assert_int_equal(profile->nr_threads, COUNT);
	assert_true(end.tv_sec - begin.tv_sec < 30);
	profile_destroy(profile);
	bytes_clear(&records);
}

/* What is said again replaces what was said. */
static void test_said_again(void **state)
{
	struct byte_buffer records = {0};
	struct recording_state came;
	struct profile *profile;

	(void)state;
	say_head(&records);
	say(&records, RECORD_PROCESS, "nnnnnsss", N(0), N(0), N(0), N(0), N(0), NULL, NULL, NULL);
	say_all(&records);
	say(&records, RECORD_PROCESS, "nnnnnsss", N(0), N(100), N(7), N(12345), N(5), "puma", NULL, NULL);
	say(&records, RECORD_THREAD, "nnnnbs", N(0), N(1), N(105), N(2), 0, "reaper");
	profile = read_records(&records, &came);
	assert_null(came.damage);
	assert_int_equal(profile->nr_processes, 1);
	assert_int_equal(profile->processes[0].pid, 100);
	assert_int_equal(profile->processes[0].parent, 7);
	assert_int_equal(profile->processes[0].started, 12345);
	assert_string_equal(profile->processes[0].command, "puma");
	assert_string_equal(profile->processes[0].ruby_version, "3.4.5");
	assert_int_equal(profile->nr_threads, 2);
	assert_int_equal(profile->threads[1].tid, 105);
	assert_int_equal(profile->threads[1].ractor, 2);
	assert_string_equal(profile->threads[1].name, "reaper");
	profile_destroy(profile);
	bytes_clear(&records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_processes),
	    cmocka_unit_test(test_no_process),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_functions),
	    cmocka_unit_test(test_frames_and_nodes),
	    cmocka_unit_test(test_spans),
	    cmocka_unit_test(test_wakers),
	    cmocka_unit_test(test_ends),
	    cmocka_unit_test(test_reset),
	    cmocka_unit_test(test_bytes_of_strings),
	    cmocka_unit_test(test_system_calls),
	    cmocka_unit_test(test_depth),
	    cmocka_unit_test(test_crowds),
	    cmocka_unit_test(test_said_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
