/*
 * JSON for programs: what a thread waits for, what it holds, and which deadlocks there are. doc/json.md describes the
 * fields.
 */
#ifndef RBDUMP_WAITS_JSON_H
#define RBDUMP_WAITS_JSON_H

#include "trace/trace.h"

struct json_t;

/* Each function returns a JSON value (jansson's json_t) that the caller owns; NULL if there is not enough memory. */

/* Returns the member "lock" of the object "waits" of a thread: an object, or null. */
struct json_t *waits_json_lock(const struct trace *trace, const struct trace_thread *thread);
/* Returns the member "holds" of a thread: an array. */
struct json_t *waits_json_holds(const struct trace_thread *thread);
/*
 * Returns the member "waits" of a thread whose stack was the same in several looks: an object with "lock" and "holds".
 * "lock" and "holds" contain only the facts that trace_same_waits() compares. A holder has no index, because an index is
 * valid only in the thread list of one trace.
 */
struct json_t *waits_json_lasting(const struct trace *trace, const struct trace_thread *thread);
/* Returns the member "deadlocks" of the process: an array, or null if rbdump does not know the deadlocks. */
struct json_t *waits_json_deadlocks(const struct trace *trace);

#endif
