/*
 * Measures the progress of the target. The progress is a count that the target itself writes to a file. Without such a
 * file, the progress is the target's CPU time. CPU time overstates the progress, because it includes work that the
 * kernel does in the target's context on behalf of a tracer.
 */
#ifndef RBDUMP_PROGRESS_H
#define RBDUMP_PROGRESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct progress;

/*
 * Begins to measure.
 *   path  a file that the target writes. The file begins with a little-endian number of 8 bytes, which never
 *         decreases. NULL: measure CPU time
 * If the file cannot be opened, or is not a regular file, fails with an error that names the file.
 */
struct error *progress_open(pid_t pid, const char *path, struct progress **ret);
void progress_close(struct progress *progress); /* NULL is fine */

/* The progress so far; 0 if it is not known. Only the difference between two values has a meaning. */
double progress_now(const struct progress *progress);

/* The unit of the progress: "cpu_time" (in seconds) or "count". */
const char *progress_unit(const struct progress *progress);

#endif
