/*
 * The output of a recording: one file, or several files one after the other. Each of these files is called a part.
 */
#ifndef RBDUMP_RECORD_OUTPUT_H
#define RBDUMP_RECORD_OUTPUT_H

#include "base/error.h"
#include "recording/writer.h"

struct output;

/*
 * Opens the output. Fails if the file cannot be opened, or if output_open() refuses the file (see `named`).
 *   name   the name of the file; "-": standard output; NULL: a temporary file without a name (see output_reread())
 *   named  whether the user has named the file. If true, the file may be of any kind, even a link or a device. If
 *          false, the file must not exist yet, or must be a regular file that belongs to the user and has only one hard
 *          link. The files of later parts (FILE.1, FILE.2, ...) are checked as if `named` were false
 *   head   the data at the beginning of the first part. In later parts, only `start` differs
 */
struct error *output_open(const char *name, bool named, const struct recording_head *head, struct output **ret);

/* Adds records to a part. Records for a finished part are dropped. */
struct error *output_add(struct output *output, uint32_t part, const uint8_t *records, size_t length);

/* Writes all records that were added. After this call, these records can be read even if rbdump is killed. */
struct error *output_flush(struct output *output);

/*
 * Begins the next part: FILE.1 follows FILE, and FILE.2 follows FILE.1. Records for the previous part can still be
 * added until output_finish_before() is called. No more than two parts are open at a time. If two parts are already
 * open, output_rotate() first finishes the older part.
 *   now_ns  the current time, in ns since the beginning of the part that now ends
 *   start   the CLOCK_REALTIME time at which the new part begins
 */
struct error *output_rotate(struct output *output, uint64_t now_ns, const struct timespec *start);

/* Finishes the part before the current part. Does nothing if that part is already finished. */
struct error *output_finish_before(struct output *output);

/* The number of the current part. The first part has number 0. */
uint32_t output_part(const struct output *output);

/* Finishes all parts. After this call, the caller must not add records. */
struct error *output_finish(struct output *output, uint64_t now_ns);

/*
 * Returns the descriptor of the unnamed temporary file (see output_open()). Sets the file position to the beginning, so
 * that the caller can read the recording. The caller must not close the descriptor.
 */
int output_reread(struct output *output);

/* The name of the output, for messages. */
const char *output_name(const struct output *output);

/*
 * Removes the output file if it is a regular file and there are no other parts. Call this function if nothing was
 * recorded.
 */
void output_remove(struct output *output);

void output_close(struct output *output); /* NULL is fine */

#endif
