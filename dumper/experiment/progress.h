/*
 * Measures the progress of the target. The progress is a count that the target itself writes to a file. Without such a
 * file, the progress is the target's CPU time. The CPU time overstates the progress, because the CPU time also includes
 * the work that the kernel does for a tracer in the context of the target.
 */
#ifndef RBDUMP_PROGRESS_H
#define RBDUMP_PROGRESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct progress;

/*
 * Begins to measure.
 *   path  a file that the target writes; NULL: measure CPU time. The file begins with an 8-byte little-endian number
 *         that never decreases
 * If the file cannot be opened, or is not a regular file, fails with an error that names the file.
 */
struct error *progress_open(pid_t pid, const char *path, struct progress **ret);
void progress_close(struct progress *progress); /* NULL is fine */

/*
 * Returns the progress so far, or 0 if the progress is not known. Only the difference between two results is
 * meaningful.
 */
double progress_now(const struct progress *progress);

/* Returns the unit of the progress: "cpu_time" (in seconds) or "count". */
const char *progress_unit(const struct progress *progress);

#endif
