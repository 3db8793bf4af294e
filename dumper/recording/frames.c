#include "recording/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd_errors.h>

#include "base/array.h"
#include "recording/format.h"

/* The most that is unpacked of a frame, and the most memory that zstd may take for that. */
#define FRAME_MAX  (2u * RECORD_LENGTH_MAX)
#define WINDOW_LOG 27

#define INPUT_BYTES 65536u

struct error *frame_reader_open(int fd, const char *name, struct frame_reader *ret)
{
	*ret =
	    (struct frame_reader){.fd = fd, .name = name, .input = malloc(INPUT_BYTES), .context = ZSTD_createDCtx()};
	ret->in.src = ret->input;
	if (!ret->input || !ret->context)
		return error_no_memory();
	ZSTD_DCtx_setParameter(ret->context, ZSTD_d_windowLogMax, WINDOW_LOG);
	return NULL;
}

void frame_reader_close(struct frame_reader *reader)
{
	bytes_clear(&reader->frame);
	free(reader->input);
	ZSTD_freeDCtx(reader->context);
}

/* Reads more of the file. Returns false at its end, or if it cannot be read: then *error is set. */
static bool fill(struct frame_reader *reader, struct error **error)
{
	ssize_t length;

	if (reader->in.pos < reader->in.size)
		return true;
	do
		length = read(reader->fd, reader->input, INPUT_BYTES);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		*error = error_create(EXIT_FAILED, "%s cannot be read: %s", reader->name, strerror(errno));
	reader->in.size = length > 0 ? (size_t)length : 0;
	reader->in.pos = 0;
	return length > 0;
}

/* Makes room in the frame. Returns false if the frame is too long, or if there is not enough memory. */
static bool room_in_frame(struct frame_reader *reader)
{
	struct byte_buffer *frame = &reader->frame;
	if (frame->length < frame->capacity)
		return true;
	if (frame->capacity > FRAME_MAX / 2) {
		reader->what = "a zstd frame of the file is too long";
		return false;
	}
	if (array_make_room(frame->data, frame->capacity, frame->capacity + INPUT_BYTES))
		return true;
	reader->no_memory = true;
	return false;
}

bool frame_reader_next(struct frame_reader *reader, struct error **error)
{
	size_t left = 1;
	bool begun = false;

	reader->frame.length = 0;
	while (left != 0) {
		ZSTD_outBuffer out;

		/* zstd takes the last byte of a frame only once there is room for all of the frame. */
		if (!fill(reader, error)) {
			if (begun)
				reader->what = "the file was cut short";
			return false;
		}
		begun = true;
		if (!room_in_frame(reader))
			return false;
		out = (ZSTD_outBuffer){reader->frame.data, reader->frame.capacity, reader->frame.length};
		left = ZSTD_decompressStream(reader->context, &out, &reader->in);
		reader->frame.length = out.pos;
		if (ZSTD_isError(left)) {
			reader->no_memory |= ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation;
			reader->what = ZSTD_getErrorName(left);
			return false;
		}
	}
	return true;
}
