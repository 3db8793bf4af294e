/*
 * Writes a recording (see format.h) to a file while the recording is being made.
 */
#ifndef RBDUMP_RECORDING_WRITER_H
#define RBDUMP_RECORDING_WRITER_H

#include <time.h>

#include "base/error.h"
#include "recording/bytes.h"

struct recording_writer;

/* The contents of the head of a recording. */
struct recording_head {
	struct timespec start; /* the start time of the recording (CLOCK_REALTIME) */
	double rate;
	const char *mode;
	char *const *command; /* the command that rbdump started; NULL if rbdump did not start a command */
	/* Called when a signal interrupts a write. Returns true to give up the write. If `gives_up` is NULL,
	   an interrupted write always continues. */
	bool (*gives_up)(void);
};

/*
 * Begins a recording in a file that is open for writing. The caller closes the file. Fails if the head cannot be
 * written, or if there is not enough memory.
 *   name  the name of the file, for messages
 */
struct error *recording_begin(int fd, const char *name, const struct recording_head *head,
			      struct recording_writer **ret);

/*
 * Adds records. The records can stay in memory until the next call of recording_flush(). Fails if a write fails.
 */
struct error *recording_add(struct recording_writer *writer, const uint8_t *records, size_t length);

/*
 * Ends the current zstd frame, and writes it. After the call, all records that were added can be read even if rbdump is
 * killed. Fails if the write fails.
 */
struct error *recording_flush(struct recording_writer *writer);

/*
 * Adds RECORD_FINISH, which marks the recording as finished. Writes all records that are not written yet. Fails if the
 * write fails.
 */
struct error *recording_finish(struct recording_writer *writer, uint64_t now_ns);

/* Frees the writer. Records that have not been written yet are lost. NULL is fine. */
void recording_destroy(struct recording_writer *writer);

#endif
