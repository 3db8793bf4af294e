/*
 * Reads recordings (format.h) into a profile. A file can contain anything, so everything is checked. If a zstd frame
 * has a wrong checksum, that frame and everything after it are ignored.
 */
#ifndef RBDUMP_RECORDING_READER_H
#define RBDUMP_RECORDING_READER_H

#include "base/error.h"
#include "recording/profile.h"

/* The result of reading one recording. */
struct recording_state {
	bool finished; /* the recording was finished properly */
	/* A message that says what is wrong with the recording; NULL if nothing is wrong. The caller frees the
	   message. */
	char *damage;
};

/*
 * Reads whole recordings into one profile. All times are relative to the beginning of the earliest recording. A process
 * or thread that is in several recordings appears only once in the profile.
 *   names   the files; "-" is standard input
 *   states  receives the result for each recording
 * Fails if a file cannot be read, or is not a recording. If a recording is unfinished or damaged, the profile contains
 * all records that could be read, and `cut` of the profile is set.
 */
struct error *recordings_read(const char *const names[], size_t count, struct recording_state *states,
			      struct profile **ret);

/*
 * Reads one recording from an open file, in the same way as recordings_read(). Begins at the current position of the
 * file. The file stays open.
 */
struct error *recording_read_fd(int fd, const char *name, struct recording_state *state, struct profile **ret);

#endif
