/*
 * The torn log: a file with one line of JSON (doc/json.md) per logged sample. A sample is logged if it was rejected,
 * if it is *impossible*, or if its thread was single-stepped out of a torn window. A sample is impossible if rbdump
 * has accepted its stack, but the stack is not possible according to the oracle. For each place in machine code, this
 * module also counts how often the threads of rejected or impossible samples were stopped there.
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
 * Opens a log. Fails if the file cannot be opened, or if there is not enough memory.
 *   path     the file; an existing file is overwritten; NULL: write no file, and only count how often threads
 *            were stopped at each place
 *   session  must outlive the log
 */
struct error *torn_log_open(const char *path, const struct session *session, struct torn_log **ret);

/*
 * Adds a sample: the sample was rejected, it is impossible, or its thread was single-stepped.
 *   verdict  the verdict of the oracle on an accepted sample; ORACLE_LEGAL if the sample was rejected, or if there is
 *            no oracle
 */
void torn_log_add(struct torn_log *log, enum mode mode, const struct sample *sample, const struct trace_thread *thread,
		  enum oracle_verdict verdict);

/*
 * Closes and frees the log; NULL is fine. Fails if some lines could not be written.
 *   where  if not NULL, receives an array of the places in machine code where threads were stopped. The caller owns the
 *          array. The most frequent place comes first. Each element is an object with the keys "mode", "reason",
 *          "window", "function", "offset", "inlined", "file", "line", "count" and "share". A rejected or impossible
 *          sample is counted only if rbdump has read the registers of its thread, because without registers, the place
 *          is not known. `share` is `count` divided by the number of all counted samples of the mode
 */
struct error *torn_log_close(struct torn_log *log, json_t **where);

#endif
