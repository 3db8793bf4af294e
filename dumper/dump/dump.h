/*
 * Prints the stack of every thread in a live process or in a core file.
 */
#ifndef RBDUMP_DUMP_H
#define RBDUMP_DUMP_H

#include <stdbool.h>

#include "base/error.h"
#include "base/target_options.h"
#include "mixed/mixed_options.h"

/* Whether text has colours. COLOUR_AUTO: on a terminal, unless $NO_COLOR is set or $TERM is dumb. */
enum colour_when { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

struct dump_options {
	struct target_options target;
	bool json;
	bool all; /* text shows each thread separately, in Ruby's order */
	enum colour_when colour;
	unsigned int
	    looks; /* for dump_watch() and dump_merged(): how many looks; 0: dump_watch() does not end by itself */
	double interval_s;	     /* for these: the time between the beginnings of two looks */
	bool no_stop;		     /* do not stop the target */
	struct mixed_options native; /* which native frames to print; not with `no_stop` */
	bool source;		     /* add the lines of source around the current line of each frame (dump/source.h) */
	bool arguments; /* add the command line and the names of the environment (session/process_arguments.h) */
	bool another;	/* another target was printed before, so text output begins with an empty line */
};

/*
 * Prints the stacks to standard output. If the output cannot be written, the function fails, but some of the stacks
 * might already have been printed. If the function fails for another reason, it has printed nothing to standard output.
 * On success, *status receives EXIT_COMPLETE or EXIT_PARTIAL.
 */
struct error *dump_main(const struct dump_options *options, enum exit_status *status);

/*
 * Looks at a live process repeatedly, and prints the stacks of each look, with what each thread has done since the previous
 * look.
 * On a terminal, each look replaces the one before. In JSON, each look is one object on one line. Ends after `options->looks`
 * looks, at ^C or SIGTERM, or if the process has ended or has called exec; a message on standard error says so.
 *
 * A look that fails is skipped, with a message on standard error. Fails if the first look fails, or if the output cannot be
 * written. On success, *status receives EXIT_PARTIAL if a look was not complete, if one has failed, or if the process ended
 * before there were `options->looks` looks; otherwise EXIT_COMPLETE.
 */
struct error *dump_watch(const struct dump_options *options, enum exit_status *status);

/*
 * Looks at a live process `options->looks` times, and prints what was seen, merged (trace/merged.h). If ^C or SIGTERM, or the
 * end of the process, ends the looks early, prints what was seen until then. Fails, and sets *status, as dump_watch() does.
 */
struct error *dump_merged(const struct dump_options *options, enum exit_status *status);

#endif
