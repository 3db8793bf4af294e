/*
 * A stream of observations. A recording is made from a stream. The sampling loop (sampling_loop.h) is a stream. To make
 * observations in another way, add a stream in a file of its own. To make the sampling loop copy a stack in another
 * way, add a source (source.h). The code for checks, names, counts and files is the same for all streams.
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
	 * Returns the next observation, which is valid until done(). Returns NULL if there will be no more observations
	 * (`*timed_out` is false), or if there was no observation for a while (`*timed_out` is true).
	 */
	const struct observation *(*next)(struct stream *stream, bool *timed_out);
	/* Tells the stream that the caller no longer needs the last observation and its sample. */
	void (*done)(struct stream *stream);
	/*
	 * Call this function if names are found too late. For ten seconds, a stream that takes rounds then waits before
	 * each round until all earlier samples have been given back with done().
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

/* Each kind of stream is a struct whose first member is a `struct stream`. */
struct stream {
	const struct stream_operations *operations;
};

#endif
