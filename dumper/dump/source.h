/*
 * Adds lines of the source to the frames of a trace: the current line, and SOURCE_AROUND lines before and after it.
 *
 * For a live process, rbdump reads the files as they are now, and looks up their paths below the root folder of the process
 * (/proc/PID/root). If a file was changed after the process began, its lines may differ from the code that runs, and the
 * trace says so. For a core, rbdump reads files of this machine, and looks up their paths below rbdump's own root folder.
 * If such a file was changed after the core file was written, its lines may differ from the code that ran, and the trace
 * says so.
 */
#ifndef RBDUMP_DUMP_SOURCE_H
#define RBDUMP_DUMP_SOURCE_H

#include "render/render.h"
#include "session/session.h"

#define SOURCE_AROUND 2

/* rbdump shows at most this number of bytes of a line. */
#define SOURCE_LINE_BYTES 200

/*
 * Adds the lines. If the lines of a frame cannot be added, adds the reason instead.
 *   core  the path of the core file; NULL for a live process
 * Returns false if there is not enough memory.
 */
bool source_add(const struct session *session, const char *core, struct trace *trace);

#endif
