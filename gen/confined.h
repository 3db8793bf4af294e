/*
 * Making a layout in a process that has next to no privileges: an ELF file and its debug info are anybody's, and what
 * reads them is large. That process has no new privileges and no capability but the one to read files, a filter of
 * system calls that leaves it reading files and answering, and limits of memory and CPU time. All that is taken from it
 * is a layout as text, which then is read and checked as any other, or a sentence that says what is wrong.
 *
 * If DEBUGINFOD_URLS is set, libdebuginfod works in that process, too: then it may also use sockets, start threads, and
 * write files, which go to debuginfod's cache. Whoever calls this for root should see to it that the file is nobody
 * else's, or set no_server.
 */
#ifndef RBDUMP_CONFINED_H
#define RBDUMP_CONFINED_H

#include "gen/gen.h"

/* As gen_layout(). Fails also if the process cannot be confined, or ended without an answer. */
struct error *gen_layout_confined(const char *path, const struct gen_options *options, struct gen_report *report,
				  struct layout **ret);

#endif
