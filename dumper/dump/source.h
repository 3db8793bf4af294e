/*
 * Adds lines of the source to the frames of a trace: the current line, and SOURCE_AROUND lines before and after it.
 *
 * The files of a live process are read in the root of that process (/proc/PID/root), as they are now. If a file was written
 * to after the process began, the lines may differ from those that run; the trace then says so. The files for a core are
 * read on this machine, in rbdump's own root. For them, the time of the core file counts, not the time when the process began.
 */
#ifndef RBDUMP_DUMP_SOURCE_H
#define RBDUMP_DUMP_SOURCE_H

#include "render/render.h"
#include "session/session.h"

#define SOURCE_AROUND 2

/* The most bytes of one line that are shown. */
#define SOURCE_LINE_BYTES 200

/*
 * Adds the lines. A frame without lines gets a reason.
 *   core  the path of the core file; NULL for a live process
 * Returns false if there is not enough memory.
 */
bool source_add(const struct session *session, const char *core, struct trace *trace);

#endif
