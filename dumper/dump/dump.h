/*
 * Prints the stack of every thread in a live process or in a core file.
 */
#ifndef RBDUMP_DUMP_H
#define RBDUMP_DUMP_H

#include <stdbool.h>

#include "base/error.h"
#include "base/target_options.h"

struct dump_options {
	struct target_options target;
	bool json;
	bool no_stop;	/* do not stop the target */
	bool source;	/* add the lines of source around the current line of each frame (dump/source.h) */
	bool arguments; /* add the command line and the names of the environment (dump/arguments.h) */
	bool another;	/* another target was printed before, so text output begins with an empty line */
};

/*
 * Prints the stacks to standard output. If the output cannot be written, the function fails, but some of the stacks
 * might already have been printed. If the function fails for another reason, it has printed nothing to standard output.
 * On success, *status receives EXIT_COMPLETE or EXIT_PARTIAL.
 */
struct error *dump_main(const struct dump_options *options, enum exit_status *status);

#endif
