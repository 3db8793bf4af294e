/*
 * The zstd frames of a recording and the head of the first one, made by hand. A file that is no recording is refused, and
 * a frame with something wrong in it ends what is read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/format.h"
#include "synthetic_recording.h"

/* A file that is no recording is refused with a sentence that says so. */
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
	assert_string_equal(error->message, "test is not an rbdump recording");
	error_destroy(error);
}

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
		assert_string_equal(error->message, "test is not an rbdump recording");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_heads), cmocka_unit_test(test_foreign),     cmocka_unit_test(test_lengths),
	    cmocka_unit_test(test_bomb),  cmocka_unit_test(test_end_of_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
