/*
 * Makes a layout in a child process that has almost no privileges, because the ELF file and its debug info may be
 * hostile, and a large amount of code reads them. The child process has the no_new_privs attribute, and limits on memory
 * and CPU time. The child keeps only the capabilities that it needs to read the file (see trust/confine.h). A seccomp
 * filter allows the child only to read files, use memory and write its answer. The answer is an error message, or a
 * layout as text. rbdump reads and checks this layout like any other layout.
 *
 * The child process uses libdebuginfod if DEBUGINFOD_URLS is set and not empty, and if the option no_server is false. In
 * this case, the seccomp filter also allows the child to use sockets, start threads, and write the files of
 * debuginfod's cache. A caller that runs as root should set no_server if any other user can change the ELF file.
 */
#ifndef RBDUMP_CONFINED_H
#define RBDUMP_CONFINED_H

#include "gen/gen.h"

/*
 * Calls gen_layout() in the child process, and returns the result of that call. Also fails if the child cannot be
 * started or confined, takes too long, or ends without a valid answer.
 */
struct error *gen_layout_confined(const char *path, const struct gen_options *options, struct gen_report *report,
				  struct layout **ret);

#endif
