/*
 * The fuzz target for recordings. The bytes are used as the unpacked contents of a recording's frame, so that no checksum
 * protects the records. They are read once, and as two recordings of one process. The profile must be consistent, and it is
 * selected, merged, and written in a format. A failure is reported, and ends the program by abort(3).
 */
#ifndef RBDUMP_FUZZ_RECORDINGS_H
#define RBDUMP_FUZZ_RECORDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The result of one run. */
struct recordings_outcome {
	bool refused;  /* the bytes are not a recording */
	bool damaged;  /* the recording is damaged from some point on */
	bool finished; /* the recording was finished */
	size_t nr_processes, nr_threads, nr_nodes, nr_spans;
	size_t merged_processes, merged_threads; /* of the profile of two recordings */
};

/*
 * Runs the fuzz target.
 *   format  the format in which the profile is written: an index; any number is allowed
 *   ret     receives the result; may be NULL
 */
void recordings_run(const uint8_t *data, size_t size, unsigned int format, struct recordings_outcome *ret);

#endif
