/* Which threads spans are of: in the parts of one recording, and after the tables began anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/spans.h"
#include "recording/reader.h"
#include "recording/writer.h"
#include "session/session.h"
#include "synthetic_recording.h"

enum { PART_NS = 1000000000, ROUND_NS = 10000000 };

static struct spans *create(void)
{
	struct spans_options options = {0};
	struct spans *spans;

	for (int i = 0; i < SAMPLE_STATES; i++)
		options.states[i] = true;
	spans = spans_create(&options);
	assert_non_null(spans);
	spans_set_process(spans, &(struct profile_process){.pid = 100, .started = 5, .command = "ruby"});
	return spans;
}

/* A session of nothing: the threads have no names that would be read. */
static const struct session nothing;

/* One round in which one thread was seen; its stack was lost, so that nothing of a target is read. */
static void see(struct spans *spans, uint64_t address, pid_t tid, bool main, enum sample_state state, uint64_t time_ns)
{
	const struct observation seen = {.time_ns = time_ns,
					 .weight_ns = ROUND_NS,
					 .thread = address,
					 .tid = tid,
					 .ractor = 1,
					 .main = main,
					 .state = state,
					 .syscall = -1,
					 .lost = true},
				 end = {.time_ns = time_ns, .end_of_round = true};

	spans_add(spans, &nothing, NULL, &seen);
	spans_add(spans, &nothing, NULL, &end);
}

/* Ends a part: a file of its own. */
static int take_part(struct spans *spans, time_t start_s, uint64_t now_ns)
{
	const struct recording_head head = {.start = {start_s, 0}, .rate = 99, .mode = "paused"};
	struct byte_buffer records = {0};
	struct recording_writer *writer;
	const int fd = new_file();

	assert_true(spans_take(spans, now_ns, &records, NULL));
	assert_null(recording_begin(fd, "test", &head, &writer));
	assert_null(recording_add(writer, records.data, records.length));
	assert_null(recording_finish(writer, PART_NS));
	recording_destroy(writer);
	bytes_clear(&records);
	return fd;
}

static struct profile *read_parts(const int *fds, size_t count)
{
	struct recording_state states[4];
	char paths[4][64];
	const char *names[4];
	struct profile *profile;

	for (size_t i = 0; i < count; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", fds[i]);
		names[i] = paths[i];
	}
	assert_null(recordings_read(names, count, states, &profile));
	for (size_t i = 0; i < count; i++) {
		assert_null(states[i].damage);
		close(fds[i]);
	}
	return profile;
}

/*
 * A thread that ended, and another that runs on its native thread: Ruby keeps native threads for a while
 * (thread_pthread.c of 2.6 to 3.4: USE_THREAD_CACHE).
 */
static void test_same_tid(void **state)
{
	struct spans *spans = create();
	struct profile *profile;
	int fds[2];

	(void)state;
	see(spans, 0x1000, 101, false, SAMPLE_CPU, ROUND_NS);
	see(spans, 0x2000, 101, false, SAMPLE_GC, 2 * ROUND_NS);
	see(spans, 0x2000, 101, false, SAMPLE_GC, 3 * ROUND_NS);
	see(spans, 0x2000, 101, false, SAMPLE_GC, 4 * ROUND_NS);
	fds[0] = take_part(spans, 1000, PART_NS);
	assert_true(spans_begin_part(spans, PART_NS));
	see(spans, 0x2000, 101, false, SAMPLE_GVL, PART_NS + ROUND_NS);
	see(spans, 0x3000, 101, false, SAMPLE_SLEEPING, PART_NS + 2 * ROUND_NS);
	fds[1] = take_part(spans, 1001, 2 * PART_NS);
	spans_destroy(spans);
	profile = read_parts(fds, 2);
	assert_int_equal(profile->nr_threads, 3);
	assert_int_equal(profile->nr_spans, 4);
	/* By thread: what the first one did, what the second one did in both parts, and the third one. */
	assert_int_equal(profile->spans[0].state, SAMPLE_CPU);
	assert_int_equal(profile->spans[0].thread, 0);
	assert_int_equal(profile->spans[1].state, SAMPLE_GC);
	assert_int_equal(profile->spans[1].thread, 1);
	assert_int_equal(profile->spans[2].state, SAMPLE_GVL);
	assert_int_equal(profile->spans[2].thread, 1);
	assert_int_equal(profile->spans[3].state, SAMPLE_SLEEPING);
	assert_int_equal(profile->spans[3].thread, 2);
	profile_destroy(profile);
}

/* The main thread of a program that started is the main thread of the Ruby, also if a part ended before that. */
static void test_starting(void **state)
{
	(void)state;
	for (int part = 0; part < 2; part++) {
		struct spans *spans = create();
		struct profile *profile;
		int fds[2];

		spans_add_starting(spans, 100, 0, ROUND_NS, 1);
		if (part == 0)
			see(spans, 0x1000, 100, true, SAMPLE_CPU, 2 * ROUND_NS);
		fds[0] = take_part(spans, 1000, PART_NS);
		assert_true(spans_begin_part(spans, PART_NS));
		see(spans, 0x1000, 100, true, SAMPLE_CPU, PART_NS + 2 * ROUND_NS);
		fds[1] = take_part(spans, 1001, 2 * PART_NS);
		spans_destroy(spans);
		profile = read_parts(fds, 2);
		assert_int_equal(profile->nr_threads, 1);
		profile_destroy(profile);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same_tid),
	    cmocka_unit_test(test_starting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
