/*
 * Turns observations into records. Finds the names of frames and threads, and puts stacks into the tables of the
 * recording. Merges consecutive equal observations of a thread into one span.
 */
#ifndef RBDUMP_SPANS_H
#define RBDUMP_SPANS_H

#include "recording/encoder.h"
#include "sampling/decoder.h"
#include "sampling/observation.h"

struct spans;

struct spans_options {
	uint32_t process;	    /* the number of the process in the recording */
	bool states[SAMPLE_STATES]; /* which thread states to record */
};

/* Creates a struct spans without records. Returns NULL if there is not enough memory. */
struct spans *spans_create(const struct spans_options *options);
void spans_destroy(struct spans *spans); /* NULL is fine */

/* Adds a record about the process to the current part and to each later part. Copies the strings. */
void spans_set_process(struct spans *spans, const struct profile_process *process);

/*
 * Adds a span for the time when the program was starting and had no Ruby stack yet.
 *   count  how many samples rbdump would normally have taken while the program was starting
 */
void spans_add_starting(struct spans *spans, pid_t tid, uint64_t start_ns, uint64_t end_ns, uint32_t count);

/* The function of the stream (sampling/stream.h) that the caller of spans_add() must call. */
enum spans_request {
	SPANS_NOTHING,
	/*
	 * The caller must call keep_pace(), because names are read too late. Names are read too late in two cases.
	 * First, the target might have moved objects before the names of this stack's frames were read. Second, the
	 * names of the frames in many recent stacks were read only after a garbage collection had begun.
	 */
	SPANS_KEEP_PACE,
	/*
	 * The caller must call ask(), because the names of the frames in the thread's stack are not known. The thread
	 * is asleep, and its stack has not changed since the previous observation.
	 */
	SPANS_COPY_AGAIN,
};

/*
 * Adds an observation.
 *   session  the session of the target, used to read the names of threads
 */
enum spans_request spans_add(struct spans *spans, const struct session *session, struct decoder *decoder,
			     const struct observation *seen);

/* Forgets all threads. Call this function if the process has called exec. */
void spans_forget_threads(struct spans *spans);

/*
 * Appends to `ret` all records that are new since the last call of spans_take(). Splits each span that is still in
 * progress: the span ends now, and a new span continues it.
 *   counts  receives the sample counts of this part so far; may be NULL
 * Returns false if this call or any earlier call ran out of memory.
 */
bool spans_take(struct spans *spans, uint64_t now_ns, struct byte_buffer *ret, struct profile_counts *counts);

/*
 * Begins a new part, with new tables. Call spans_take() first. Returns false if there is not enough memory.
 *   origin_ns  when the part begins, in ns since the origin of the recording (like `time_ns` of struct observation)
 */
bool spans_begin_part(struct spans *spans, uint64_t origin_ns);

#endif
