/*
 * Writes what a trace contains besides the stacks: details about frames and about the process (trace/details.h). Only the
 * renderers of this folder include this header.
 */
#ifndef RBDUMP_RENDER_DETAILS_H
#define RBDUMP_RENDER_DETAILS_H

#include <stdio.h>

#include "trace/trace.h"

struct json_t;

/*
 * Writes lines of text that belong below a frame: self, local variables, and lines of the source. If a variable belongs to
 * the enclosing code, and an older frame of the stack shows this variable, it is omitted here.
 *   dim, bold, reset  codes for a terminal; can be empty
 */
void details_text(const struct trace_frame *frame, const char *dim, const char *bold, const char *reset, FILE *stream);

/* Writes the arguments of the process as lines of text. Writes nothing if `arguments` is NULL. */
void details_text_arguments(const struct trace_arguments *arguments, const char *bold, const char *reset, FILE *stream);

/* Adds the details that are known about a frame to the JSON object of the frame. */
void details_json(const struct trace_frame *frame, struct json_t *object);

/* Returns the arguments of the process as a JSON object; JSON's null if `arguments` is NULL. */
struct json_t *details_json_arguments(const struct trace_arguments *arguments);

#endif
