/*
 * Ways to show a trace. A renderer sees the trace and the stream, and nothing else.
 */
#ifndef RBDUMP_RENDER_H
#define RBDUMP_RENDER_H

#include <stdbool.h>
#include <stdio.h>

#include "trace/trace.h"

struct json_t;

/*
 * For people: a header line, then each thread with its frames, innermost first, as `path:line:in 'label'`, which
 * terminals and editors make clickable. Control characters in names come out as \xNN, so that a name cannot drive the
 * terminal.
 *   colour  with ANSI colours
 */
void render_text(const struct trace *trace, bool colour, FILE *stream);

/* For programs: JSON, schema 1, one object and a newline. Returns false if out of memory. */
bool render_json(const struct trace *trace, FILE *stream);

/*
 * Writes JSON (jansson's json_t) with every control character in it escaped (text_control()): jansson itself escapes
 * those of C0 only. Returns false if it is NULL, out of memory, or if the stream fails.
 *   flags  of json_dumpf()
 */
bool render_json_write(const struct json_t *root, size_t flags, FILE *stream);

/* The frames of one thread as JSON has them: an array (jansson's json_t), owned by the caller; NULL if out of memory.
 */
struct json_t *render_json_frames(const struct trace_thread *thread);

#endif
