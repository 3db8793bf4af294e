/*
 * Adds lines of the source to the frames of a trace: the current line, and SOURCE_AROUND lines before and after it.
 *
 * The files of a live process are read in the root of that process (/proc/PID/root), as they are now. If a file was changed
 * after the process began, its lines may differ from the code that runs; the trace then says so. The files for a core are
 * read on this machine, in rbdump's own root. If such a file was changed after the core file was written, the trace says
 * that its lines may differ.
 */
#ifndef RBDUMP_DUMP_SOURCE_H
#define RBDUMP_DUMP_SOURCE_H

#include "render/render.h"
#include "session/session.h"

#define SOURCE_AROUND 2

/* The maximum number of bytes that are shown of one line. */
#define SOURCE_LINE_BYTES 200

/*
 * Adds the lines. If the lines of a frame cannot be added, adds the reason instead.
 *   core  the path of the core file; NULL for a live process
 * Returns false if there is not enough memory.
 */
bool source_add(const struct session *session, const char *core, struct trace *trace);

#endif
