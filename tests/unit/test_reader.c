/* What reads recordings: several as one, cut short, damaged, and made by somebody who means harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <zstd.h>

#include "recording/bytes.h"
#include "recording/encoder.h"
#include "recording/format.h"
#include "recording/reader.h"
#include "recording/writer.h"

static const char *const no_such_thing = "the file contains an invalid record";

static int new_file(void)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void put(int fd, const void *bytes, size_t length)
{
	assert_int_equal(write(fd, bytes, length), (ssize_t)length);
}

/* Bytes, unpacked, as one frame. */
static void put_frame(int fd, const void *bytes, size_t length, bool checksum)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t bound = ZSTD_compressBound(length), size;
	void *frame = malloc(bound);

	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum);
	size = ZSTD_compress2(context, frame, bound, bytes, length);
	assert_false(ZSTD_isError(size));
	put(fd, frame, size);
	free(frame);
	ZSTD_freeCCtx(context);
}

/* What a file has, from its beginning; fails the test if it is refused. */
static struct profile *read_back(int fd, struct recording_state *state)
{
	struct profile *profile;
	struct error *error;

	lseek(fd, 0, SEEK_SET);
	error = recording_read_fd(fd, "test", state, &profile);
	if (error)
		fail_msg("%s", error->message);
	assert_non_null(profile);
	return profile;
}

/* The same, of what no recording is: it is refused with a sentence that says so. */
static void assert_refused(int fd)
{
	struct recording_state state;
	struct profile *profile = (struct profile *)&state;
	struct error *error;

	lseek(fd, 0, SEEK_SET);
	error = recording_read_fd(fd, "test", &state, &profile);
	assert_non_null(error);
	assert_null(profile);
	assert_null(state.damage);
	assert_int_equal(error->status, EXIT_FAILED);
	assert_string_equal(error->message, "test is not a recording of rbdump");
	error_destroy(error);
}

/* ---- records by hand */

/*
 * Adds a record of these fields: n a number (uint64_t), i a signed one (int64_t), b a byte (int), s a string, t text
 * without a length.
 */
static void say_list(struct byte_buffer *records, char record, const char *fields, va_list values)
{
	struct byte_buffer payload = {0};

	for (; *fields; fields++) {
		const char *text;

		switch (*fields) {
		case 'n':
			bytes_add_number(&payload, va_arg(values, uint64_t));
			break;
		case 'i':
			bytes_add_signed(&payload, va_arg(values, int64_t));
			break;
		case 'b':
			bytes_add_byte(&payload, (uint8_t)va_arg(values, int));
			break;
		case 's':
			bytes_add_string(&payload, va_arg(values, const char *));
			break;
		default:
			text = va_arg(values, const char *);
			bytes_add(&payload, text, strlen(text));
			break;
		}
	}
	bytes_add_record(records, record, &payload);
	bytes_clear(&payload);
}

static void say(struct byte_buffer *records, char record, const char *fields, ...)
{
	va_list values;

	va_start(values, fields);
	say_list(records, record, fields, values);
	va_end(values);
}

#define N(number) ((uint64_t)(number))
#define I(number) ((int64_t)(number))

static void say_head(struct byte_buffer *records)
{
	bytes_add(records, RECORDING_MAGIC, strlen(RECORDING_MAGIC));
	say(records, RECORD_HEAD, "t",
	    "{\"tool\":\"rbdump 9\",\"mode\":\"paused\",\"start_s\":1700000000,\"start_ns\":0,\"rate\":99}");
}

/* A process, two threads, two functions, a frame each, a stack of both, and a span of 5 us in it. */
static void say_all(struct byte_buffer *records)
{
	say(records, RECORD_PROCESS, "nnnnnsss", N(0), N(100), N(1), N(12345), N(0), "ruby", "3.4.5", "ruby 3.4.5");
	say(records, RECORD_THREAD, "nnnnbs", N(0), N(0), N(100), N(1), 1, NULL);
	say(records, RECORD_THREAD, "nnnnbs", N(0), N(1), N(101), N(1), 0, "worker");
	say(records, RECORD_FUNCTION, "nbissss", N(0), PROFILE_RUBY, I(1), "main", "main", "a.rb", "/a.rb");
	say(records, RECORD_FUNCTION, "nbissss", N(0), PROFILE_CFUNC, I(0), "sleep", "sleep", NULL, NULL);
	say(records, RECORD_FRAMES, "nnini", N(0), N(0), I(3), N(1), I(3));
	say(records, RECORD_NODES, "nnnnn", N(0), N(1), N(0), N(1), N(1));
	say(records, RECORD_SPANS, "ninnnbn", N(0), I(10), N(0), N(5), N(1), PROFILE_CPU, N(2));
}

static struct profile *read_records(const struct byte_buffer *records, struct recording_state *state)
{
	struct profile *profile;
	int fd = new_file();

	assert_false(records->failed);
	put_frame(fd, records->data, records->length, true);
	profile = read_back(fd, state);
	close(fd);
	return profile;
}

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
	assert_false(takes(RECORD_FUNCTION, "nbissss", N(0), PROFILE_MARK + 1, I(1), "m", "m", "a.rb", "/a.rb"));
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
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), PROFILE_STATES, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), 0x40, N(0)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), 0, N(3)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), 0, UINT64_MAX));
	assert_false(takes(RECORD_SPANS, "ninnnb", N(0), I(0), N(1), N(5), N(1), 0));
	assert_true(takes(RECORD_SPANS, "ninnnbnn", N(0), I(0), N(1), N(5), N(1), PROFILE_BLOCKED, N(0), N(1)));
	assert_false(takes(RECORD_SPANS, "ninnnbn", N(0), I(0), N(1), N(5), N(1), PROFILE_BLOCKED, N(0)));
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

/* ---- frames and heads */

static bool takes_head(const char *json)
{
	struct byte_buffer records = {0};
	struct recording_state state;
	struct profile *profile;
	struct error *error;
	int fd = new_file();

	bytes_add(&records, RECORDING_MAGIC, strlen(RECORDING_MAGIC));
	say(&records, RECORD_HEAD, "t", json);
	say_all(&records);
	put_frame(fd, records.data, records.length, true);
	lseek(fd, 0, SEEK_SET);
	error = recording_read_fd(fd, "test", &state, &profile);
	if (error)
		assert_string_equal(error->message, "test is not a recording of rbdump");
	else
		assert_int_equal(profile->nr_spans, 1);
	assert_null(state.damage);
	profile_destroy(profile);
	bytes_clear(&records);
	close(fd);
	if (!error)
		return true;
	error_destroy(error);
	return false;
}

#define HEAD(seconds, ns, rate)                                                                                        \
	"{\"tool\":\"t\",\"mode\":\"m\",\"start_s\":" seconds ",\"start_ns\":" ns ",\"rate\":" rate "}"

static void test_heads(void **state)
{
	char *deep = malloc(100001);

	(void)state;
	assert_true(takes_head(HEAD("0", "0", "99")));
	assert_true(takes_head(HEAD("9007199254", "999999999", "0.01")));
	assert_false(takes_head(HEAD("9007199255", "0", "99")));
	assert_false(takes_head(HEAD("-1", "0", "99")));
	assert_false(takes_head(HEAD("1.5", "0", "99")));
	assert_false(takes_head(HEAD("99999999999999999999", "0", "99")));
	assert_false(takes_head(HEAD("0", "-1", "99")));
	assert_false(takes_head(HEAD("0", "1000000000", "99")));
	assert_false(takes_head(HEAD("0", "0", "0")));
	assert_false(takes_head(HEAD("0", "0", "-99")));
	assert_false(takes_head(HEAD("0", "0", "1e-300")));
	assert_false(takes_head(HEAD("0", "0", "1e300")));
	assert_false(takes_head(HEAD("0", "0", "1e999")));
	assert_false(takes_head(HEAD("0", "0", "\"99\"")));
	assert_false(takes_head("{\"tool\":\"t\",\"mode\":7,\"start_s\":0,\"start_ns\":0,\"rate\":99}"));
	assert_false(takes_head("{\"mode\":\"m\",\"start_s\":0,\"start_ns\":0,\"rate\":99}"));
	assert_false(takes_head("[]"));
	assert_false(takes_head("{"));
	assert_false(takes_head(""));
	memset(deep, '[', 100000);
	deep[100000] = '\0';
	assert_false(takes_head(deep));
	free(deep);
}

/* Bytes as the one frame of a file. */
static void assert_frame_refused(const void *bytes, size_t length)
{
	int fd = new_file();

	put_frame(fd, bytes, length, true);
	assert_refused(fd);
	close(fd);
}

static void test_foreign(void **state)
{
	static const uint8_t too_much_memory[] = {0x28, 0xb5, 0x2f, 0xfd, 0x04, 0xa8, 1, 0, 0, 0x99, 0xe9, 0xd8, 0x51};
	static const uint8_t skipped[] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 'x', 'x', 'x', 'x'};
	static const char later[] = "rbdump recording 2\n";
	struct byte_buffer records = {0};
	int fd = new_file();

	(void)state;
	assert_refused(fd);
	put(fd, "\n", 1);
	assert_refused(fd);
	put(fd, "some text, longer than any number that a file could begin with\n", 63);
	assert_refused(fd);
	assert_int_equal(ftruncate(fd, 0), 0);
	lseek(fd, 0, SEEK_SET);
	put(fd, too_much_memory, sizeof(too_much_memory));
	assert_refused(fd);
	assert_int_equal(ftruncate(fd, 0), 0);
	lseek(fd, 0, SEEK_SET);
	put(fd, skipped, sizeof(skipped));
	assert_refused(fd);
	close(fd);
	assert_frame_refused("", 0);
	assert_frame_refused("rbdump", 6);
	assert_frame_refused(later, strlen(later));
	/* The first is the head. */
	assert_frame_refused(RECORDING_MAGIC, strlen(RECORDING_MAGIC));
	bytes_add(&records, RECORDING_MAGIC, strlen(RECORDING_MAGIC));
	say_all(&records);
	assert_frame_refused(records.data, records.length);
	records.length = strlen(RECORDING_MAGIC);
	say(&records, 'q', "t", "anything");
	assert_frame_refused(records.data, records.length);
	records.length = 0;
	say_head(&records);
	records.data[0] ^= 1;
	assert_frame_refused(records.data, records.length);
	bytes_clear(&records);
}

/* Bytes behind a frame that is right, as a frame. */
static void assert_tail(const void *bytes, size_t length, const char *damage)
{
	struct byte_buffer records = {0};
	struct recording_state state;
	struct profile *profile;
	int fd = new_file();

	say_head(&records);
	say_all(&records);
	put_frame(fd, records.data, records.length, true);
	put_frame(fd, bytes, length, true);
	profile = read_back(fd, &state);
	if (damage)
		assert_string_equal(state.damage, damage);
	else
		assert_null(state.damage);
	assert_int_equal(profile->nr_spans, 1);
	assert_true(profile->cut);
	profile_destroy(profile);
	free(state.damage);
	close(fd);
	bytes_clear(&records);
}

static void test_lengths(void **state)
{
	struct byte_buffer records = {0};

	(void)state;
	assert_tail("", 0, NULL);
	assert_tail("q\x02xx", 4, NULL);
	/* No length; a length that is none; more than there is. */
	assert_tail("q", 1, no_such_thing);
	assert_tail("q\x80", 2, no_such_thing);
	assert_tail("q\x03xx", 4, no_such_thing);
	bytes_add_byte(&records, 'q');
	bytes_add_number(&records, UINT64_MAX);
	assert_tail(records.data, records.length, no_such_thing);
	/* A record that is too long, all of which is there. */
	for (unsigned int more = 0; more < 2; more++) {
		void *zeros = calloc(1, RECORD_LENGTH_MAX + more);

		records.length = 0;
		bytes_add_byte(&records, 'q');
		bytes_add_number(&records, RECORD_LENGTH_MAX + more);
		bytes_add(&records, zeros, RECORD_LENGTH_MAX + more);
		assert_tail(records.data, records.length, more ? no_such_thing : NULL);
		free(zeros);
	}
	bytes_clear(&records);
}

/* A frame of a few kilobytes that would unpack to 200 MiB. */
static void test_bomb(void **state)
{
	const size_t length = 200 << 20;
	uint8_t *zeros = mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(zeros != MAP_FAILED);
	assert_tail(zeros, length, "a zstd frame of the file is too long");
	munmap(zeros, length);
}

/*
 * A frame without a checksum, of as many bytes as there is room for at first, or a little more: nothing is left to be
 * read when the last of it is unpacked.
 */
static void test_end_of_file(void **state)
{
	(void)state;
	for (size_t length = 65000; length < 66000; length += 97) {
		struct byte_buffer records = {0};
		struct recording_state came;
		struct profile *profile;
		char *text = malloc(length + 1);
		int fd = new_file();

		memset(text, 'x', length);
		text[length] = '\0';
		say_head(&records);
		say(&records, 'q', "t", text);
		say_all(&records);
		say(&records, RECORD_FINISH, "n", N(100));
		put_frame(fd, records.data, records.length, false);
		profile = read_back(fd, &came);
		assert_true(came.finished);
		assert_null(came.damage);
		assert_int_equal(profile->nr_spans, 1);
		profile_destroy(profile);
		bytes_clear(&records);
		free(text);
		close(fd);
	}
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
		say(&records, RECORD_SPANS, "ninnnbnn", N(0), I(1), N(1), N(1), N(1), PROFILE_BLOCKED, N(0),
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
	assert_true(end.tv_sec - begin.tv_sec < 10);
	profile_destroy(profile);
	bytes_clear(&records);
}

/* ---- cut short, and damaged */

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
			assert_string_equal(error->message, "test is not a recording of rbdump");
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
				assert_string_equal(error->message, "test is not a recording of rbdump");
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

/* ---- several recordings */

struct small {
	int fd;
	char name[64];
};

/* A recording of a process with one thread, that was in one state all the time. */
static struct small small_recording(time_t start_s, long start_ns, uint64_t started, const char *name,
				    enum profile_state of, uint64_t begin_ns, uint64_t weight_ns, bool finish)
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

static void assert_span(const struct profile_span *span, uint32_t thread, enum profile_state state, uint64_t start_us,
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
	    small_recording(1002, 500000000, 5, NULL, PROFILE_GC, 1000000, 2000000, true),
	    small_recording(1000, 900000000, 5, NULL, PROFILE_CPU, 1000000, 3000000, true),
	    small_recording(1001, 0, 5, NULL, PROFILE_GVL, 0, 4000, true),
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
	assert_span(&profile->spans[0], 0, PROFILE_CPU, 1000, 3000);
	assert_span(&profile->spans[1], 0, PROFILE_GVL, 100000, 4);
	assert_span(&profile->spans[2], 0, PROFILE_GC, 1601000, 2000);
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
	    small_recording(1000, 0, 5, NULL, PROFILE_CPU, 0, 10000000, true),
	    small_recording(1000, 0, 5, NULL, PROFILE_GC, 0, 0, true),
	    small_recording(1000, 4000000, 5, NULL, PROFILE_GVL, 0, 3000000, true),
	};
	struct recording_state came[3];
	struct profile *profile = read_all(files, 3, came);

	(void)state;
	assert_int_equal(profile->nr_spans, 3);
	assert_span(&profile->spans[0], 0, PROFILE_GC, 0, 0);
	assert_span(&profile->spans[1], 0, PROFILE_CPU, 0, 4000);
	assert_span(&profile->spans[2], 0, PROFILE_GVL, 4000, 3000);
	profile_destroy(profile);
}

static void test_other_processes(void **state)
{
	/* The number was given anew; when it was started is not known; another thread. */
	const struct small files[] = {
	    small_recording(1000, 0, 5, NULL, PROFILE_CPU, 0, 1000000, true),
	    small_recording(1000, 0, 6, NULL, PROFILE_CPU, 0, 1000000, true),
	    small_recording(1000, 0, 0, NULL, PROFILE_CPU, 0, 1000000, true),
	    small_recording(1000, 0, 0, NULL, PROFILE_CPU, 0, 1000000, true),
	    small_recording(1000, 0, 5, "main", PROFILE_CPU, 0, 1000000, false),
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
	    small_recording(1000, 0, 5, NULL, PROFILE_CPU, 0, 1000, true),
	    small_recording(1500000000, 0, 5, NULL, PROFILE_GC, long_ns / 1000, 1000, true),
	    small_recording(9007199254, 0, 5, NULL, PROFILE_GVL, 1000, long_ns, true),
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
	assert_span(&profile->spans[1], 1, PROFILE_CPU, 10, 5);
	assert_span(&profile->spans[2], 2, PROFILE_CPU, 10, 5);
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
	const struct small file = small_recording(1000, 0, 5, NULL, PROFILE_CPU, 0, 1000, true);
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
	    cmocka_unit_test(test_processes),
	    cmocka_unit_test(test_no_process),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_functions),
	    cmocka_unit_test(test_frames_and_nodes),
	    cmocka_unit_test(test_spans),
	    cmocka_unit_test(test_ends),
	    cmocka_unit_test(test_reset),
	    cmocka_unit_test(test_heads),
	    cmocka_unit_test(test_foreign),
	    cmocka_unit_test(test_lengths),
	    cmocka_unit_test(test_bomb),
	    cmocka_unit_test(test_end_of_file),
	    cmocka_unit_test(test_bytes_of_strings),
	    cmocka_unit_test(test_system_calls),
	    cmocka_unit_test(test_depth),
	    cmocka_unit_test(test_crowds),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_damaged),
	    cmocka_unit_test(test_one_process),
	    cmocka_unit_test(test_overlap),
	    cmocka_unit_test(test_other_processes),
	    cmocka_unit_test(test_far_apart),
	    cmocka_unit_test(test_two_threads),
	    cmocka_unit_test(test_said_again),
	    cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
