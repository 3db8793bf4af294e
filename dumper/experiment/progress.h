/*
 * How far the target has got: by a count that it keeps itself, or else by the CPU time that it has had. The second is
 * less than it seems: what a tracer makes the kernel do in the target's name is counted as the target's time.
 */
#ifndef RBDUMP_PROGRESS_H
#define RBDUMP_PROGRESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"

struct progress;

/*
 * Begins to watch a process.
 *   path  a file that the target writes: its first 8 bytes, little-endian, are a number that only grows; NULL: CPU time
 * Fails, naming the file, if it cannot be opened.
 */
struct error *progress_open(pid_t pid, const char *path, struct progress **ret);
void progress_close(struct progress *progress); /* NULL is fine */

/* How far it is now; 0 if that cannot be told. Differences are what counts. */
double progress_now(const struct progress *progress);

/* "cpu_time" (seconds), or "count". */
const char *progress_unit(const struct progress *progress);

#endif
