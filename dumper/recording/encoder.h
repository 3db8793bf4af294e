/*
 * One process's part of a recording: what is seen of it, as records. What stacks are made of is written once, and
 * referred to.
 */
#ifndef RBDUMP_ENCODER_H
#define RBDUMP_ENCODER_H

#include "recording/bytes.h"
#include "recording/profile.h"

struct encoder;

/*
 *   process  its number in the recording
 * NULL if out of memory.
 */
struct encoder *encoder_create(uint32_t process);
void encoder_destroy(struct encoder *encoder); /* NULL is fine */

/*
 * The functions, frames and nodes that runs may refer to: to be added to by profile_add_function() and the like. Until
 * encoder_reset().
 */
struct profile *encoder_tables(struct encoder *encoder);

/* Says what the process is, or is by now. */
void encoder_process(struct encoder *encoder, const struct profile_process *process);

/* Says who thread number `id` is, or is by now; ids ascend from 0. */
void encoder_thread(struct encoder *encoder, uint32_t id, const struct profile_thread *thread);

/* Adds a run. Its times are rounded to microseconds, so that those of one thread still meet. */
void encoder_run(struct encoder *encoder, const struct profile_run *run);

/*
 * Forgets tables and threads: all that is referred to from now on is said anew. False if out of memory: then all is as
 * it was. stacks    nodes that go on to be referred to: receive what they are by now new_file  what follows goes to
 * another file; all before was taken
 */
bool encoder_reset(struct encoder *encoder, uint32_t *stacks, size_t count, bool new_file);

/* How much memory the tables take. */
size_t encoder_memory(const struct encoder *encoder);

/*
 * Gives all records since the last time, behind what `ret` has, and with them the counts so far.
 *   now_ns  the time, since the beginning of the recording
 */
void encoder_take(struct encoder *encoder, uint64_t now_ns, const struct profile_counts *counts,
		  struct byte_buffer *ret);

#endif
