#include "recording/writer.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "base/array.h"
#include "base/text.h"
#include "recording/format.h"

/* Speed is more important than size: writing must not disturb what is measured. */
#define LEVEL 3

/* The size of the buffer of unpacked records: when it is full it is written as a frame. */
#define FRAME_BYTES (1u << 20)

struct recording_writer {
	int fd;
	char *name;
	ZSTD_CCtx *context;
	bool (*gives_up)(void);
	struct byte_buffer records; /* since the last frame */
	struct byte_buffer frame;
};

static struct error *write_all(const struct recording_writer *writer, const uint8_t *data, size_t length)
{
	while (length > 0) {
		ssize_t written = write(writer->fd, data, length);

		/* The other end may have made the pipe non-blocking. */
		if (written < 0 && errno == EAGAIN &&
		    poll(&(struct pollfd){.fd = writer->fd, .events = POLLOUT}, 1, -1) >= 0)
			continue;
		if (written < 0 && errno == EINTR && !(writer->gives_up && writer->gives_up()))
			continue;
		if (written < 0)
			return error_create(EXIT_FAILED, "%s cannot be written: %s", writer->name, strerror(errno));
		data += written;
		length -= (size_t)written;
	}
	return NULL;
}

struct error *recording_flush(struct recording_writer *writer)
{
	struct byte_buffer *frame = &writer->frame;
	size_t bound, size;

	if (writer->records.failed)
		return error_no_memory();
	if (writer->records.length == 0)
		return NULL;
	bound = ZSTD_compressBound(writer->records.length);
	if (!array_make_room(frame->data, frame->capacity, bound))
		return error_no_memory();
	size =
	    ZSTD_compress2(writer->context, frame->data, frame->capacity, writer->records.data, writer->records.length);
	if (ZSTD_isError(size))
		return error_create(EXIT_FAILED, "%s cannot be written: %s", writer->name, ZSTD_getErrorName(size));
	writer->records.length = 0;
	return write_all(writer, frame->data, size);
}

struct error *recording_add(struct recording_writer *writer, const uint8_t *records, size_t length)
{
	bytes_add(&writer->records, records, length);
	return writer->records.length >= FRAME_BYTES ? recording_flush(writer) : NULL;
}

/* The arguments of a command may contain any bytes. */
static json_t *words_of(char *const *command)
{
	json_t *words = json_array();

	for (; command && *command; command++) {
		struct text text = {0};

		text_add(&text, *command, strlen(*command));
		json_array_append_new(words, json_string(text.data ? text.data : ""));
		text_clear(&text);
	}
	return words;
}

static struct error *add_head(struct recording_writer *writer, const struct recording_head *head)
{
	struct byte_buffer payload = {0};
	json_t *object =
	    json_pack("{s:s, s:I, s:i, s:f, s:s, s:o}", "tool", "rbdump " RBDUMP_VERSION, "start_s",
		      (json_int_t)head->start.tv_sec, "start_ns", (int)head->start.tv_nsec, "rate", head->rate, "mode",
		      head->mode, "command", head->command ? words_of(head->command) : json_null());
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	if (!text)
		return error_no_memory();
	bytes_add(&writer->records, RECORDING_MAGIC, strlen(RECORDING_MAGIC));
	bytes_add(&payload, text, strlen(text));
	bytes_add_record(&writer->records, RECORD_HEAD, &payload);
	bytes_clear(&payload);
	free(text);
	return recording_flush(writer);
}

struct error *recording_begin(int fd, const char *name, const struct recording_head *head,
			      struct recording_writer **ret)
{
	struct recording_writer *writer = calloc(1, sizeof(*writer));
	struct error *error;

	*ret = NULL;
	if (!writer)
		return error_no_memory();
	writer->fd = fd;
	writer->gives_up = head->gives_up;
	writer->name = strdup(name);
	writer->context = ZSTD_createCCtx();
	if (!writer->name || !writer->context) {
		recording_destroy(writer);
		return error_no_memory();
	}
	ZSTD_CCtx_setParameter(writer->context, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(writer->context, ZSTD_c_checksumFlag, 1);
	error = add_head(writer, head);
	if (error)
		recording_destroy(writer);
	else
		*ret = writer;
	return error;
}

struct error *recording_finish(struct recording_writer *writer, uint64_t now_ns)
{
	struct byte_buffer payload = {0};

	bytes_add_number(&payload, now_ns / 1000);
	bytes_add_record(&writer->records, RECORD_FINISH, &payload);
	bytes_clear(&payload);
	return recording_flush(writer);
}

void recording_destroy(struct recording_writer *writer)
{
	if (!writer)
		return;
	ZSTD_freeCCtx(writer->context);
	bytes_clear(&writer->records);
	bytes_clear(&writer->frame);
	free(writer->name);
	free(writer);
}
