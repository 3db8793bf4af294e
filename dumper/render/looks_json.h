/*
 * Adds members to the JSON of a dump if rbdump looks at the process several times. Only the .c files that implement
 * render.h include this header.
 */
#ifndef RBDUMP_LOOKS_JSON_H
#define RBDUMP_LOOKS_JSON_H

#include <jansson.h>

#include "trace/trace.h"

/*
 * Adds the member `look` to the dump. It describes this look (doc/json.md). Adds the member `progress` to each thread: what
 * the thread has done since the previous look. If there is not enough memory, the next render_json_write() fails
 * (json_build.h).
 *   root  the JSON object of the trace, with the array `threads` in the order of trace->threads; NULL if there was not enough
 *         memory to make the object
 */
void looks_json_add(json_t *root, const struct trace *trace);

#endif
