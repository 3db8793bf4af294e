/*
 * Reads the zstd frames of a recording. zstd compresses each frame separately, so a recording that was cut short can be
 * read up to its last complete frame.
 */
#ifndef RBDUMP_FRAMES_H
#define RBDUMP_FRAMES_H

#include <stdbool.h>
#include <zstd.h>

#include "base/error.h"
#include "recording/bytes.h"

struct frame_reader {
	int fd;
	const char *name; /* the name of the file, for messages */
	ZSTD_DCtx *context;
	uint8_t *input;
	ZSTD_inBuffer in;
	struct byte_buffer frame; /* the decompressed contents of the current zstd frame */
	const char *what;	  /* what is wrong with the file; NULL if nothing is wrong */
	bool no_memory;
};

/*
 * Begins to read an open file. Fails if there is not enough memory. Call frame_reader_close() even after a failure.
 * frame_reader_close() does not close the file.
 */
struct error *frame_reader_open(int fd, const char *name, struct frame_reader *ret);
void frame_reader_close(struct frame_reader *reader);

/*
 * Decompresses the next zstd frame into `frame`. Returns false at the end of the file, and on failure. If something is
 * wrong with the file, sets `what`. If there is not enough memory, sets `no_memory`. If the file cannot be read, sets
 * *error.
 */
bool frame_reader_next(struct frame_reader *reader, struct error **error);

#endif
