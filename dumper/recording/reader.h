/*
 * Reading recordings (format.h) into a profile. A file may hold anything: whatever it says is checked, and a
 * frame whose checksum is wrong is not looked at.
 */
#ifndef RBDUMP_RECORDING_READER_H
#define RBDUMP_RECORDING_READER_H

#include "error.h"
#include "recording/profile.h"

/* What came of reading one. */
struct recording_state {
	bool finished; /* it was finished as it should be */
	char *damage;  /* it is damaged from some point on: how, for people; NULL if not. The caller's to free() */
};

/*
 * Reads recordings, whole, into one profile: the times of all are since the beginning of the first, processes and
 * threads that are in several are one.
 *   names   "-" is standard input
 *   states  receives what came of each
 * Fails if one cannot be read or is no recording. What is there of one that is not finished, or damaged from some point
 * on, is in the profile, which then is `cut`.
 */
struct error *recordings_read(const char *const names[], size_t count, struct recording_state *states,
			      struct profile **ret);

/* The same of one file that is open, from where it is; it is the caller's. */
struct error *recording_read_fd(int fd, const char *name, struct recording_state *state, struct profile **ret);

#endif
