/*
 * Writes a trace as text or JSON. A renderer reads only the trace, and writes only to the stream.
 */
#ifndef RBDUMP_RENDER_H
#define RBDUMP_RENDER_H

#include <stdbool.h>
#include <stdio.h>

#include "trace/trace.h"

struct json_t;

/*
 * Writes text for people: a header line, then each thread with its frames, innermost first. A frame is shown as
 * `path:line:in 'label'`, which terminals and editors make clickable. Control characters in names are written as \xNN,
 * so that a name cannot control the terminal.
 *   colour  whether to use ANSI colours
 */
void render_text(const struct trace *trace, bool colour, FILE *stream);

/*
 * Writes JSON for programs: one object (schema 1), followed by a newline. Returns false if there is not enough memory.
 */
bool render_json(const struct trace *trace, FILE *stream);

/*
 * Writes a JSON value (jansson's json_t). Escapes every control character in the strings of the value (see
 * text_control()), because jansson itself escapes only the C0 control characters. Returns false if `root` is NULL, if
 * there is not enough memory, or if the stream fails.
 *   flags  as for json_dumpf()
 */
bool render_json_write(const struct json_t *root, size_t flags, FILE *stream);

/*
 * Returns the frames of one thread as a JSON array (jansson's json_t); NULL if there is not enough memory. The caller
 * owns the array.
 */
struct json_t *render_json_frames(const struct trace_thread *thread);

#endif
