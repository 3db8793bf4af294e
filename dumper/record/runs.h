/*
 * From beats to a recording: names are found, stacks are put into the tables, and beats in a row that are the same
 * become one run.
 */
#ifndef RBDUMP_RUNS_H
#define RBDUMP_RUNS_H

#include "record/pulse.h"
#include "recording/encoder.h"
#include "sample/decoder.h"

struct runs;

struct runs_options {
	uint32_t process;	     /* its number in the recording */
	bool states[PROFILE_STATES]; /* what is recorded */
};

/* NULL if out of memory. */
struct runs *runs_create(const struct runs_options *options);
void runs_destroy(struct runs *runs); /* NULL is fine */

/* Says what the process is, now and in each part of the recording. The strings are copied. */
void runs_set_process(struct runs *runs, const struct profile_process *process);

/*
 * Says that there was nothing to look at from then to now: the program was starting.
 *   count  of samples that would have been taken
 */
void runs_add_starting(struct runs *runs, pid_t tid, uint64_t start_ns, uint64_t end_ns, uint32_t count);

/*
 * Adds a beat.
 *   session  for the names of threads
 * Returns whether the target may have moved or freed what the sample refers to before its names were read
 * (pulse_keep_pace()).
 */
bool runs_add(struct runs *runs, const struct session *session, struct decoder *decoder, const struct beat *beat);

/* All threads have ended: the program is another one. */
void runs_forget_threads(struct runs *runs);

/*
 * Gives all that was added since the last time, as records; what goes on goes on after it.
 *   counts  receives the counts so far; NULL
 * False if out of memory, ever.
 */
bool runs_take(struct runs *runs, uint64_t now_ns, struct byte_buffer *ret, struct profile_counts *counts);

/*
 * From now on all is for another file, which begins with nothing. All before was taken. False if out of memory.
 *   origin_ns  its time 0, by that of the beats
 */
bool runs_begin_part(struct runs *runs, uint64_t origin_ns);

#endif
