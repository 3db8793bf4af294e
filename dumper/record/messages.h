/*
 * The messages that `rbdump record` prints on standard error.
 */
#ifndef RBDUMP_MESSAGES_H
#define RBDUMP_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "recording/profile.h"

/* Prints one sentence, which may contain text from a target. Control characters in the sentence are escaped. */
void messages_say(const char *message);

/*
 * Shows the progress, in a line that the next call overwrites. Call this function only if standard error is a terminal.
 *   ns         nanoseconds since the beginning of the recording
 *   processes  how many captures are running
 */
void messages_progress(uint64_t ns, size_t processes, const struct profile_counts *counts);

/*
 * Prints that `--mode auto` has selected `mode`, because rbdump cannot sample in the kernel. `error` contains the reason.
 */
void messages_fallback(const char *mode, const struct error *error);

/* Prints how many samples were recorded, and any warnings about the samples. Call this at the end of a recording. */
void messages_result(const struct profile_counts *counts, double rate, double max_cpu_percent);

#endif
