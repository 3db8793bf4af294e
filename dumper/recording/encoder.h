/*
 * Encodes the records about one process of a recording. Until encoder_reset() begins new tables, each function, frame,
 * node and waker is written only once. Later records refer to it by its id.
 */
#ifndef RBDUMP_ENCODER_H
#define RBDUMP_ENCODER_H

#include "recording/bytes.h"
#include "recording/profile.h"

struct encoder;

/*
 * Creates an encoder with empty tables. Returns NULL if there is not enough memory.
 *   process  the number of the process in the recording
 */
struct encoder *encoder_create(uint32_t process);
void encoder_destroy(struct encoder *encoder); /* NULL is fine */

/*
 * Returns the tables of the functions, frames, nodes and wakers that spans can refer to. To add entries to the tables,
 * use profile_add_function(), profile_add_frame(), profile_add_node() and profile_add_waker(). The tables are valid
 * until the next call of encoder_reset().
 */
struct profile *encoder_tables(struct encoder *encoder);

/* Adds a record about the process. A later record about the process replaces this record. */
void encoder_process(struct encoder *encoder, const struct profile_process *process);

/*
 * Adds a record about thread number `id`. A later record about the thread replaces this record. The first thread must
 * have the id 0, the next new thread the id 1, and so on.
 */
void encoder_thread(struct encoder *encoder, uint32_t id, const struct profile_thread *thread);

/*
 * Adds a span. Rounds the start and the end of the span down to microseconds. Writes the time between the rounded start
 * and the rounded end as the span's weight. In this way, adjacent spans of a thread stay adjacent.
 */
void encoder_span(struct encoder *encoder, const struct profile_span *span);

/*
 * Begins new tables. Later records refer only to the new tables. So the functions, frames and nodes that later records
 * need are written again. The new tables contain no wakers. The caller must add all threads again. If `new_file` is
 * true, the caller must also add the process again. If there is not enough memory, returns false and changes nothing.
 *   stacks    the ids of the nodes that later spans will still need; receives the ids of these nodes in the new tables
 *   new_file  whether later records go to another file. If true, the caller must call encoder_take() before
 *             encoder_reset(), because earlier records belong to the old file
 */
bool encoder_reset(struct encoder *encoder, uint32_t *stacks, size_t count, bool new_file);

/* Returns how many bytes are used by the tables, and by the array that contains the end of each thread's last span. */
size_t encoder_memory(const struct encoder *encoder);

/*
 * Appends to `ret` all records that were added since the last call of encoder_take(), and then a record that contains
 * `counts`.
 *   now_ns  the current time, in ns since the start time of the current file
 */
void encoder_take(struct encoder *encoder, uint64_t now_ns, const struct profile_counts *counts,
		  struct byte_buffer *ret);

#endif
