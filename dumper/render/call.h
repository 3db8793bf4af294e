/*
 * The system call of a thread, as text and as JSON. This header is used only inside render/.
 */
#ifndef RBDUMP_RENDER_CALL_H
#define RBDUMP_RENDER_CALL_H

#include <stdio.h>

#include "base/text.h"
#include "target/call.h"

struct json_t;

/* The size of the buffer for call_format_time(), in bytes, including the NUL at the end. */
#define CALL_TIME 64

/*
 * Writes a point in time in the format of RFC 3339, in UTC and with milliseconds. Writes "" if `ns` is negative.
 *   ns  nanoseconds since the beginning of 1970 (UTC)
 */
void call_format_time(int64_t ns, char ret[CALL_TIME]);

/*
 * Appends words that say what the thread does in the call: `reads from fd 7`,
 * `waits for fd 5 (read), fd 9 (read), for at most 5 s`. Appends nothing if the call is not decoded (`action` is NULL).
 */
void call_add_sentence(struct text *text, const struct call *call);

/*
 * Appends words that say what a descriptor is: `pipe, written by process 12 (cat) fd 1`. Appends nothing if rbdump knows
 * nothing about the descriptor.
 */
void call_add_descriptor(struct text *text, const struct facts *facts);

/*
 * Writes the lines below the heading of a thread: the call, and each of its descriptors. Control characters are written
 * as \xNN.
 *   dim, reset  codes for a terminal, written before and after the lines; "" without colour
 */
void call_print(const struct call *call, const char *dim, const char *reset, FILE *stream);

/* Returns the call as a JSON object (doc/json.md) that the caller owns; NULL if there is not enough memory. */
struct json_t *call_json(const struct call *call);

#endif
