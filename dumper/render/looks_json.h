/*
 * What is added to the JSON of a dump if rbdump looks at the process several times. Only the .c files of render.h include
 * this header.
 */
#ifndef RBDUMP_LOOKS_JSON_H
#define RBDUMP_LOOKS_JSON_H

#include <jansson.h>

#include "trace/trace.h"

/*
 * Adds which look it is, and what each thread has done since the previous look. If there is not enough memory, the next
 * render_json_write() fails (json_build.h).
 *   root  the object of the trace; its array `threads` is in the order of the trace; NULL if there was not enough memory
 */
void looks_json_add(json_t *root, const struct trace *trace);

#endif
