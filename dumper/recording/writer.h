/*
 * The file that a recording is written to, as it goes (format.h).
 */
#ifndef RBDUMP_RECORDING_WRITER_H
#define RBDUMP_RECORDING_WRITER_H

#include <time.h>

#include "error.h"
#include "recording/bytes.h"

struct recording_writer;

/* What the head of a recording tells. */
struct recording_head {
	struct timespec start; /* CLOCK_REALTIME, of the time 0 */
	double rate;
	const char *mode;
	char *const *command; /* that was started; NULL if none was */
	/* Asked if a signal interrupts a write: whether to give up. NULL: never. */
	bool (*gives_up)(void);
};

/*
 * Begins a recording in a file that is open for writing, and is the caller's.
 *   name  of the file, for messages
 */
struct error *recording_begin(int fd, const char *name, const struct recording_head *head,
			      struct recording_writer **ret);

/* Adds records. They are written with the next recording_flush(), or before. */
struct error *recording_add(struct recording_writer *writer, const uint8_t *records, size_t length);

/* Writes what was added as a whole frame: from now on it can be read whatever happens. */
struct error *recording_flush(struct recording_writer *writer);

/* Says that this was all, and writes it. */
struct error *recording_finish(struct recording_writer *writer, uint64_t now_ns);

void recording_destroy(struct recording_writer *writer); /* NULL is fine; writes nothing */

#endif
