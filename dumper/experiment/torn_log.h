/*
 * Rejected and impossible samples, and those that were accepted after their thread was stepped out of a torn window:
 * one line of JSON each (doc/json.md). And a count of where the threads of the rejected and the impossible were
 * stopped.
 */
#ifndef RBDUMP_TORN_LOG_H
#define RBDUMP_TORN_LOG_H

#include <jansson.h>

#include "experiment/oracle.h"
#include "sample/sampler.h"
#include "session/session.h"
#include "trace/trace.h"

struct torn_log;

/*
 *   path     the file to write, from its beginning; NULL to count only
 *   session  must outlive the log
 */
struct error *torn_log_open(const char *path, const struct session *session, struct torn_log **ret);

/* Adds a sample: one of those above. `verdict` is the oracle's of an accepted one, ORACLE_LEGAL if it was rejected. */
void torn_log_add(struct torn_log *log, const struct sample *sample, const struct trace_thread *thread,
		  enum oracle_verdict verdict);

/*
 * Ends the log; NULL is fine. Fails if not all could be written.
 *   where  NULL, or receives an array, the most frequent first, owned by the caller: {"mode", "reason", "window",
 *          "function", "offset", "inlined", "file", "line", "count", "share"}, `share` being that of its mode's
 *          rejected and impossible samples that have registers
 */
struct error *torn_log_close(struct torn_log *log, json_t **where);

#endif
