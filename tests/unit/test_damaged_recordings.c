/*
 * A recording that the writer wrote, and that was cut short or damaged at each of its bytes: all that is before that
 * place is read, and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/encoder.h"
#include "recording/writer.h"
#include "synthetic_recording.h"

enum { FRAMES = 6 };

/* A recording of some frames, with as many spans in the first so many of them. */
struct sample_file {
	uint8_t bytes[65536];
	size_t length, ends[FRAMES], spans[FRAMES], spans_of_thread[FRAMES];
};

static void make_file(struct sample_file *ret)
{
	static const struct recording_head head = {.start = {.tv_sec = 1700000000}, .rate = 99, .mode = "paused"};
	struct encoder *encoder = encoder_create(0);
	const struct profile_process process = {.pid = 100, .started = 5, .command = "ruby"};
	const struct profile_thread thread = {.tid = 100, .main = true, .ractor = 1};
	const struct profile_counts counts = {0};
	struct byte_buffer records = {0};
	struct recording_writer *writer;
	uint64_t now_ns = 0;
	int fd = new_file();

	*ret = (struct sample_file){0};
	assert_null(recording_begin(fd, "test", &head, &writer));
	ret->ends[0] = (size_t)lseek(fd, 0, SEEK_CUR);
	encoder_process(encoder, &process);
	encoder_thread(encoder, 0, &thread);
	for (size_t frame = 1; frame < FRAMES; frame++) {
		ret->spans[frame] = ret->spans[frame - 1];
		for (int i = 0; i < 5; i++, now_ns += 10000000) {
			struct profile *tables = encoder_tables(encoder);
			char name[32];
			struct profile_function function = {.kind = PROFILE_RUBY};
			struct profile_span span = {
			    .start_ns = now_ns, .weight_ns = 10000000, .count = 1, .syscall = -1};

			snprintf(name, sizeof(name), "method_%zu_%d", frame, i);
			function.name = function.label = profile_string(tables, name);
			span.node = profile_add_node(
			    tables, 0, profile_add_frame(tables, profile_add_function(tables, &function), i));
			encoder_span(encoder, &span);
			ret->spans[frame]++;
		}
		encoder_take(encoder, now_ns, &counts, &records);
		assert_null(recording_add(writer, records.data, records.length));
		records.length = 0;
		assert_null(frame == FRAMES - 1 ? recording_finish(writer, now_ns) : recording_flush(writer));
		ret->ends[frame] = (size_t)lseek(fd, 0, SEEK_CUR);
	}
	ret->length = ret->ends[FRAMES - 1];
	assert_int_equal(pread(fd, ret->bytes, sizeof(ret->bytes), 0), (ssize_t)ret->length);
	recording_destroy(writer);
	encoder_destroy(encoder);
	bytes_clear(&records);
	close(fd);
}

/* All spans of the first frames, and no others. */
static void assert_spans_of(const struct profile *profile, const struct sample_file *file, size_t frames)
{
	assert_int_equal(profile->nr_spans, file->spans[frames - 1]);
	for (size_t i = 0; i < profile->nr_spans; i++) {
		char name[32];

		snprintf(name, sizeof(name), "method_%zu_%zu", i / 5 + 1, i % 5);
		assert_true(profile->spans[i].start_ns == i * 10000000);
		assert_string_equal(
		    profile->functions[profile->frames[profile->nodes[profile->spans[i].node].frame].function].name,
		    name);
	}
}

/* Reads bytes through a pipe, as report reads its standard input. */
static struct error *read_piped(const uint8_t *bytes, size_t length, struct recording_state *state,
				struct profile **ret)
{
	struct error *error;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	put(ends[1], bytes, length);
	close(ends[1]);
	error = recording_read_fd(ends[0], "test", state, ret);
	close(ends[0]);
	return error;
}

static void test_cut(void **state)
{
	static struct sample_file file;

	(void)state;
	make_file(&file);
	for (size_t length = 0; length <= file.length; length++) {
		struct recording_state came;
		struct profile *profile;
		struct error *error = read_piped(file.bytes, length, &came, &profile);
		size_t frames = 0;

		while (frames < FRAMES && file.ends[frames] <= length)
			frames++;
		if (frames == 0) {
			assert_non_null(error);
			assert_string_equal(error->message, "test is not an rbdump recording");
			error_destroy(error);
			continue;
		}
		assert_null(error);
		assert_spans_of(profile, &file, frames);
		assert_int_equal(profile->cut, frames < FRAMES);
		assert_int_equal(came.finished, frames == FRAMES);
		if (length == file.ends[frames - 1])
			assert_null(came.damage);
		else
			assert_string_equal(came.damage, "the file was cut short");
		free(came.damage);
		profile_destroy(profile);
	}
}

static void test_damaged(void **state)
{
	static struct sample_file file;

	(void)state;
	make_file(&file);
	for (size_t at = 0; at < file.length; at++) {
		struct recording_state came;
		struct profile *profile;
		struct error *error;
		size_t frames = 0;
		uint8_t before = file.bytes[at];

		while (file.ends[frames] <= at)
			frames++;
		for (int way = 0; way < 3; way++) {
			file.bytes[at] = way == 0 ? before ^ 1 : way == 1 ? before ^ 0x80 : (uint8_t)~before;
			error = read_piped(file.bytes, file.length, &came, &profile);
			file.bytes[at] = before;
			if (frames == 0 && error) {
				assert_string_equal(error->message, "test is not an rbdump recording");
				error_destroy(error);
				continue;
			}
			assert_null(error);
			/* A few bits say nothing, like those of a larger window. */
			if (came.finished) {
				assert_null(came.damage);
				assert_spans_of(profile, &file, FRAMES);
			} else {
				assert_non_null(came.damage);
				assert_true(profile->cut);
				assert_spans_of(profile, &file, frames);
			}
			free(came.damage);
			profile_destroy(profile);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
