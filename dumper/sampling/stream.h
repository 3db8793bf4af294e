/*
 * A stream of observations. A recording is made from a stream. The sampling loop (sampling_loop.h) is a stream. To make
 * observations in another way, add a stream in a separate file. To make the sampling loop copy a stack in another way,
 * add a source (source.h). The code for checks, names, counts and files is the same for all streams.
 */
#ifndef RBDUMP_STREAM_H
#define RBDUMP_STREAM_H

#include "base/error.h"
#include "sampling/observation.h"

struct stream;

struct stream_operations {
	/* Starts the stream. This function can be called again after end(). */
	struct error *(*begin)(struct stream *stream);
	/*
	 * Returns the next observation, which is valid until done() is called. If there will be no more observations,
	 * returns NULL and sets `*timed_out` to false. If there was no observation for a while, returns NULL and sets
	 * `*timed_out` to true.
	 */
	const struct observation *(*next)(struct stream *stream, bool *timed_out);
	/* Tells the stream that the caller no longer needs the last observation and its sample. */
	void (*done)(struct stream *stream);
	/*
	 * Call this function if the names for stacks cannot be read in time (SPANS_KEEP_PACE in record/spans.h). In a
	 * stream with rounds, for ten seconds after this call, a new round begins only when done() has been called for
	 * all earlier samples.
	 */
	void (*keep_pace)(struct stream *stream);
	/*
	 * Asks for a new copy of the stack of a thread that is still asleep (sampling/observation_queue.h). This
	 * pointer is NULL if the stream needs no such requests.
	 */
	void (*ask)(struct stream *stream, uint64_t thread);
	/* Asks the stream to end soon. */
	void (*stop)(struct stream *stream);
	/*
	 * Waits for the end of the stream, and drops the remaining observations. Returns whether begin() must be called
	 * again.
	 */
	bool (*end)(struct stream *stream);
	void (*destroy)(struct stream *stream);
};

/* Each kind of stream is a struct that begins with a `struct stream`. */
struct stream {
	const struct stream_operations *operations;
};

#endif
