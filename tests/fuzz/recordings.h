/*
 * The fuzz target for recordings: bytes are taken for what the frame of a recording unpacks to, so that no checksum is
 * in the way of the records. They are read, once and as two recordings of one process, and what is in the profile must
 * hold together, be selected, merged, and written in a format. What does not is reported, and ends the program by
 * abort(2).
 */
#ifndef RBDUMP_FUZZ_RECORDINGS_H
#define RBDUMP_FUZZ_RECORDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What came of one. */
struct recordings_outcome {
	bool refused;  /* no recording at all */
	bool damaged;  /* from some point on */
	bool finished; /* else it was not finished */
	size_t nr_processes, nr_threads, nr_nodes, nr_runs;
	size_t merged_processes, merged_threads; /* of both */
};

/*
 *   format  which one it is written in, counted from 0; any number
 *   ret     may be NULL
 */
void recordings_run(const uint8_t *data, size_t size, unsigned int format, struct recordings_outcome *ret);

#endif
