/*
 * Where a recording is written to: one file, or one after the other.
 */
#ifndef RBDUMP_RECORD_OUTPUT_H
#define RBDUMP_RECORD_OUTPUT_H

#include "error.h"
#include "recording/writer.h"

struct output;

/*
 * Opens it. Fails if that cannot be.
 *   name   of the file; "-": standard output; NULL: a file without a name, to be read again
 *   named  whether the user has named it: then it may be whatever the user wants, a link or a device. Else, and for
 *          FILE.1 and those after it, it is a new file, or a regular one of the user's own with no other name
 *   head   what each file begins with; its `start` is that of the first
 */
struct error *output_open(const char *name, bool named, const struct recording_head *head, struct output **ret);

/* Adds records to a part; those of one that is finished are dropped. */
struct error *output_add(struct output *output, uint32_t part, const uint8_t *records, size_t length);

/* Writes what was added: from now on it can be read, whatever happens. */
struct error *output_flush(struct output *output);

/*
 * Begins the next part: FILE.1 after FILE, then FILE.2. The part before it goes on to be written until
 * output_finish_before(); only two are open at a time.
 *   now_ns  of the part that ends, since its beginning
 *   start   of the new one: CLOCK_REALTIME, of its time 0
 */
struct error *output_rotate(struct output *output, uint64_t now_ns, const struct timespec *start);
struct error *output_finish_before(struct output *output);

/* Which part is written, counted from 0. */
uint32_t output_part(const struct output *output);

/* Says that this was all. */
struct error *output_finish(struct output *output, uint64_t now_ns);

/* The file that is written, from its beginning, to be read: of one without a name. */
int output_reread(struct output *output);

/* What it is called, for people. */
const char *output_name(const struct output *output);

/* Nothing was recorded: there is no file to be left. */
void output_remove(struct output *output);

void output_close(struct output *output); /* NULL is fine */

#endif
