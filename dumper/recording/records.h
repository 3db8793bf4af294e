/*
 * Reads the records of a recording (format.h) into a profile. The contents of the records are checked, because a
 * recording can be forged.
 */
#ifndef RBDUMP_RECORDS_H
#define RBDUMP_RECORDS_H

#include "recording/bytes.h"
#include "recording/profile.h"

struct process_map;

/* The caller sets `profile` of a new reader to a profile that the caller owns, and all other members to zero. */
struct record_reader {
	struct profile *profile;
	bool has_head, finished;
	const char *what; /* what is wrong with the recording; NULL if nothing is wrong */
	bool no_memory;
	uint64_t offset_us;		/* start time of the recording, in us since the start time of the profile */
	struct process_map **processes; /* indexed by process number; NULL for a process without a record */
	size_t nr_processes, processes_capacity;
	/* How many generations of ids have begun, in all processes together. Within a generation, each id in the
	   records of a process has one meaning. The first record of a process begins the first generation of this
	   process. Each RECORD_RESET of the process begins its next generation. */
	uint64_t generations;
	/* For each thread of the profile: the last generation that has a record about the thread; 0 if no generation
	   has such a record. */
	uint64_t *said_in;
	size_t said_capacity;
	uint32_t *depths; /* for each node of the profile: the depth of its stack */
	size_t nr_depths, depths_capacity;
};

/* Reads the records of a zstd frame. Returns false if a record is invalid, or if there is not enough memory. */
bool record_reader_read(struct record_reader *reader, struct byte_cursor *cursor);

/* Adds the counts of all processes to the profile. Call this function at the end of the recording. */
void record_reader_add_counts(struct record_reader *reader);

/* Frees everything except the profile. */
void record_reader_clear(struct record_reader *reader);

#endif
