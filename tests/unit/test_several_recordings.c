/*
 * Several recordings that are read as one: which processes and threads are the same, where their times are, and which
 * files are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/encoder.h"
#include "recording/format.h"
#include "recording/writer.h"
#include "synthetic_recording.h"

struct small {
	int fd;
	char name[64];
};

/* A recording of a process with one thread, that was in one state all the time. */
static struct small small_recording(time_t start_s, long start_ns, uint64_t started, const char *name,
				    enum sample_state of, uint64_t begin_ns, uint64_t weight_ns, bool finish)
{
	const struct recording_head head = {
	    .start = {start_s, start_ns}, .rate = (double)(start_s % 100 + 1), .mode = "paused"};
	const struct profile_process process = {
	    .pid = 100, .started = started, .command = "ruby", .begin_ns = begin_ns};
	const struct profile_thread thread = {.tid = 100, .main = true, .ractor = 1, .name = name};
	const struct profile_span span = {
	    .start_ns = begin_ns, .weight_ns = weight_ns, .count = 7, .state = (uint8_t)of, .syscall = -1};
	const struct profile_counts counts = {.samples = 7, .verdicts = {7}};
	struct encoder *encoder = encoder_create(3);
	struct byte_buffer records = {0};
	struct small ret = {.fd = new_file()};
	struct recording_writer *writer;

	assert_null(recording_begin(ret.fd, "test", &head, &writer));
	encoder_process(encoder, &process);
	encoder_thread(encoder, 0, &thread);
	encoder_span(encoder, &span);
	encoder_take(encoder, begin_ns + weight_ns, &counts, &records);
	assert_null(recording_add(writer, records.data, records.length));
	assert_null(finish ? recording_finish(writer, begin_ns + weight_ns) : recording_flush(writer));
	recording_destroy(writer);
	encoder_destroy(encoder);
	bytes_clear(&records);
	snprintf(ret.name, sizeof(ret.name), "/proc/self/fd/%d", ret.fd);
	return ret;
}

static struct profile *read_all(const struct small *files, size_t count, struct recording_state *states)
{
	const char *names[8];
	struct profile *profile;
	struct error *error;

	for (size_t i = 0; i < count; i++)
		names[i] = files[i].name;
	error = recordings_read(names, count, states, &profile);
	if (error)
		fail_msg("%s", error->message);
	for (size_t i = 0; i < count; i++)
		close(files[i].fd);
	return profile;
}

static void assert_span(const struct profile_span *span, uint32_t thread, enum sample_state state, uint64_t start_us,
			uint64_t weight_us)
{
	assert_int_equal(span->thread, thread);
	assert_int_equal(span->state, state);
	assert_int_equal(span->start_ns, start_us * 1000);
	assert_int_equal(span->weight_ns, weight_us * 1000);
}

/* One process, in parts that are given in any order; the times are those of the first. */
static void test_one_process(void **state)
{
	const struct small files[] = {
	    small_recording(1002, 500000000, 5, NULL, SAMPLE_GC, 1000000, 2000000, true),
	    small_recording(1000, 900000000, 5, NULL, SAMPLE_CPU, 1000000, 3000000, true),
	    small_recording(1001, 0, 5, NULL, SAMPLE_GVL, 0, 4000, true),
	};
	struct recording_state came[3];
	struct profile *profile = read_all(files, 3, came);

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_true(came[i].finished && !came[i].damage);
	assert_false(profile->cut);
	assert_int_equal(profile->start.tv_sec, 1000);
	assert_int_equal(profile->start.tv_nsec, 900000000);
	assert_true(profile->rate == 1);
	assert_int_equal(profile->nr_processes, 1);
	assert_int_equal(profile->nr_threads, 1);
	assert_int_equal(profile->nr_spans, 3);
	assert_span(&profile->spans[0], 0, SAMPLE_CPU, 1000, 3000);
	assert_span(&profile->spans[1], 0, SAMPLE_GVL, 100000, 4);
	assert_span(&profile->spans[2], 0, SAMPLE_GC, 1601000, 2000);
	assert_int_equal(profile->processes[0].begin_ns, 1000000);
	assert_int_equal(profile->processes[0].end_ns, 1603000000);
	assert_int_equal(profile->duration_ns, 1603000000);
	assert_int_equal(profile->processes[0].counts.samples, 21);
	assert_int_equal(profile->counts.verdicts[VERDICT_COMPLETE], 21);
	profile_destroy(profile);
}

/* Times that overlap: nothing is counted twice, and what is longest is not what is lost. */
static void test_overlap(void **state)
{
	const struct small files[] = {
	    small_recording(1000, 0, 5, NULL, SAMPLE_CPU, 0, 10000000, true),
	    small_recording(1000, 0, 5, NULL, SAMPLE_GC, 0, 0, true),
	    small_recording(1000, 4000000, 5, NULL, SAMPLE_GVL, 0, 3000000, true),
	};
	struct recording_state came[3];
	struct profile *profile = read_all(files, 3, came);

	(void)state;
	assert_int_equal(profile->nr_spans, 3);
	assert_span(&profile->spans[0], 0, SAMPLE_GC, 0, 0);
	assert_span(&profile->spans[1], 0, SAMPLE_CPU, 0, 4000);
	assert_span(&profile->spans[2], 0, SAMPLE_GVL, 4000, 3000);
	profile_destroy(profile);
}

static void test_other_processes(void **state)
{
	/* The number was given anew; when it was started is not known; another thread. */
	const struct small files[] = {
	    small_recording(1000, 0, 5, NULL, SAMPLE_CPU, 0, 1000000, true),
	    small_recording(1000, 0, 6, NULL, SAMPLE_CPU, 0, 1000000, true),
	    small_recording(1000, 0, 0, NULL, SAMPLE_CPU, 0, 1000000, true),
	    small_recording(1000, 0, 0, NULL, SAMPLE_CPU, 0, 1000000, true),
	    small_recording(1000, 0, 5, "main", SAMPLE_CPU, 0, 1000000, false),
	};
	struct recording_state came[5];
	struct profile *profile = read_all(files, 5, came);

	(void)state;
	assert_true(profile->cut);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(came[i].finished, i < 4);
	assert_int_equal(profile->nr_processes, 4);
	assert_int_equal(profile->nr_threads, 5);
	assert_int_equal(profile->threads[4].process, 0);
	assert_string_equal(profile->threads[4].name, "main");
	profile_destroy(profile);
}

/* Recordings that are decades apart: times stay in order, or are refused. */
static void test_far_apart(void **state)
{
	const uint64_t long_ns = UINT64_C(9000000000) * 1000000000;
	const struct small files[] = {
	    small_recording(1000, 0, 5, NULL, SAMPLE_CPU, 0, 1000, true),
	    small_recording(1500000000, 0, 5, NULL, SAMPLE_GC, long_ns / 1000, 1000, true),
	    small_recording(9007199254, 0, 5, NULL, SAMPLE_GVL, 1000, long_ns, true),
	};
	struct recording_state came[3];
	struct profile *profile = read_all(files, 3, came);

	(void)state;
	assert_true(came[0].finished && came[1].finished && !came[2].finished);
	assert_string_equal(came[2].damage, no_such_thing);
	assert_int_equal(profile->nr_spans, 2);
	assert_true(profile->spans[1].start_ns == UINT64_C(1499999000) * 1000000000 + long_ns / 1000);
	profile_destroy(profile);
	free(came[2].damage);
}

/* A thread that has ended, and another that got its number: two, also in the same recording. */
static void test_two_threads(void **state)
{
	struct byte_buffer records = {0};
	struct recording_state came;
	struct profile *profile;

	(void)state;
	say_head(&records);
	say_all(&records);
	say(&records, RECORD_THREAD, "nnnnbs", N(0), N(2), N(101), N(1), 0, "worker");
	say(&records, RECORD_SPANS, "ninnnbninnnbn", N(0), I(10), N(1), N(5), N(1), 0, N(0), I(10), N(2), N(5), N(1), 0,
	    N(0));
	profile = read_records(&records, &came);
	assert_int_equal(profile->nr_threads, 3);
	assert_int_equal(profile->nr_spans, 3);
	assert_span(&profile->spans[1], 1, SAMPLE_CPU, 10, 5);
	assert_span(&profile->spans[2], 2, SAMPLE_CPU, 10, 5);
	profile_destroy(profile);
	bytes_clear(&records);
}

static void assert_cannot_be_read(const char *const *files, size_t count, enum exit_status status, const char *why)
{
	struct recording_state came[3];
	struct profile *profile = (struct profile *)came;
	struct error *error = recordings_read(files, count, came, &profile);

	assert_non_null(error);
	assert_null(profile);
	assert_int_equal(error->status, status);
	if (!strstr(error->message, why))
		fail_msg("%s", error->message);
	error_destroy(error);
}

static void test_files(void **state)
{
	const struct small file = small_recording(1000, 0, 5, NULL, SAMPLE_CPU, 0, 1000, true);
	char fifo[] = "/tmp/rbdump-test-XXXXXX", *folder = mkdtemp(fifo), name[64];

	(void)state;
	assert_non_null(folder);
	snprintf(name, sizeof(name), "%s/fifo", folder);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_cannot_be_read((const char *[]){"/nonexistent"}, 1, EXIT_FAILED,
			      "/nonexistent cannot be read: No such file");
	assert_cannot_be_read((const char *[]){"/"}, 1, EXIT_FAILED, "/ cannot be read: Is a directory");
	assert_cannot_be_read((const char *[]){file.name, "/nonexistent"}, 2, EXIT_FAILED, "/nonexistent");
	assert_cannot_be_read((const char *[]){file.name, "/dev/null"}, 2, EXIT_USAGE, "is not a regular file");
	assert_cannot_be_read((const char *[]){file.name, "-"}, 2, EXIT_USAGE, "standard input");
	/* Who has its other end does not open it. */
	assert_cannot_be_read((const char *[]){file.name, name}, 2, EXIT_USAGE, "is not a regular file");
	unlink(name);
	rmdir(folder);
	close(file.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_process),	    cmocka_unit_test(test_overlap),
	    cmocka_unit_test(test_other_processes), cmocka_unit_test(test_far_apart),
	    cmocka_unit_test(test_two_threads),	    cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
