/*
 * The torn log: a file with one line of JSON (doc/json.md) per logged sample. A sample is logged if it was rejected, if
 * it was accepted although the target cannot have this stack by the oracle (it is *impossible*), or if its thread was
 * stepped out of a torn window. This module also counts where the threads of rejected or impossible samples were
 * stopped.
 */
#ifndef RBDUMP_TORN_LOG_H
#define RBDUMP_TORN_LOG_H

#include <jansson.h>

#include "experiment/modes.h"
#include "experiment/oracle.h"
#include "session/session.h"
#include "trace/trace.h"

struct torn_log;

/*
 * Opens a log. Fails if the file cannot be opened, or if out of memory.
 *   path     the file, which is overwritten; NULL: only count, write no file
 *   session  must outlive the log
 */
struct error *torn_log_open(const char *path, const struct session *session, struct torn_log **ret);

/*
 * Adds a sample that was rejected or is impossible, or whose thread was stepped.
 *   verdict  the oracle's verdict on an accepted sample; ORACLE_LEGAL for a rejected sample, or without an oracle
 */
void torn_log_add(struct torn_log *log, enum mode mode, const struct sample *sample, const struct trace_thread *thread,
		  enum oracle_verdict verdict);

/*
 * Closes and frees the log; NULL is fine. Fails if some lines could not be written.
 *   where  NULL, or receives an array of places, which the caller owns. The most frequent place comes first. Each
 *          element is {"mode", "reason", "window", "function", "offset", "inlined", "file", "line", "count", "share"}.
 *          `share` is `count` divided by the number of all samples of the mode that were rejected or impossible. Samples
 *          without registers are not counted, because their places are not known
 */
struct error *torn_log_close(struct torn_log *log, json_t **where);

#endif
