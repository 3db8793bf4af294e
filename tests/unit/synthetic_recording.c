#include "synthetic_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <zstd.h>

#include "recording/format.h"

const char *const no_such_thing = "the file contains an invalid record";

int new_file(void)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

void put(int fd, const void *bytes, size_t length)
{
	assert_int_equal(write(fd, bytes, length), (ssize_t)length);
}

void put_frame(int fd, const void *bytes, size_t length, bool checksum)
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

struct profile *read_back(int fd, struct recording_state *state)
{
	struct profile *profile;
	struct error *error;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	error = recording_read_fd(fd, "test", state, &profile);
	if (error)
		fail_msg("%s", error->message);
	assert_non_null(profile);
	return profile;
}

void say_list(struct byte_buffer *records, char record, const char *fields, va_list values)
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

void say(struct byte_buffer *records, char record, const char *fields, ...)
{
	va_list values;

	va_start(values, fields);
	say_list(records, record, fields, values);
	va_end(values);
}

void say_head(struct byte_buffer *records)
{
	bytes_add(records, RECORDING_MAGIC, strlen(RECORDING_MAGIC));
	say(records, RECORD_HEAD, "t",
	    "{\"tool\":\"rbdump 9\",\"mode\":\"paused\",\"start_s\":1700000000,\"start_ns\":0,\"rate\":99}");
}

void say_all(struct byte_buffer *records)
{
	say(records, RECORD_PROCESS, "nnnnnsss", N(0), N(100), N(1), N(12345), N(0), "ruby", "3.4.5", "ruby 3.4.5");
	say(records, RECORD_THREAD, "nnnnbs", N(0), N(0), N(100), N(1), 1, NULL);
	say(records, RECORD_THREAD, "nnnnbs", N(0), N(1), N(101), N(1), 0, "worker");
	say(records, RECORD_FUNCTION, "nbissss", N(0), PROFILE_RUBY, I(1), "main", "main", "a.rb", "/a.rb");
	say(records, RECORD_FUNCTION, "nbissss", N(0), PROFILE_CFUNC, I(0), "sleep", "sleep", NULL, NULL);
	say(records, RECORD_FRAMES, "nnini", N(0), N(0), I(3), N(1), I(3));
	say(records, RECORD_NODES, "nnnnn", N(0), N(1), N(0), N(1), N(1));
	say(records, RECORD_SPANS, "ninnnbn", N(0), I(10), N(0), N(5), N(1), SAMPLE_CPU, N(2));
}

struct profile *read_records(const struct byte_buffer *records, struct recording_state *state)
{
	struct profile *profile;
	int fd = new_file();

	assert_false(records->failed);
	put_frame(fd, records->data, records->length, true);
	profile = read_back(fd, state);
	close(fd);
	return profile;
}
