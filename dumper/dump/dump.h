/*
 * Prints the stack of every thread in a live process or in a core file.
 */
#ifndef RBDUMP_DUMP_H
#define RBDUMP_DUMP_H

#include <stdbool.h>

#include "base/error.h"
#include "base/target_options.h"
#include "mixed/mixed_options.h"

/*
 * Whether text has colours. COLOUR_AUTO: text has colours if standard output is a terminal, $TERM is set and is not "dumb",
 * and $NO_COLOR is empty or not set.
 */
enum colour_when { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

struct dump_options {
	struct target_options target;
	bool json;
	bool all; /* text shows each thread separately, in the order in which Ruby lists the threads */
	enum colour_when colour;
	/* For dump_watch() and dump_merged(): the number of looks. For dump_watch(), 0 means that there is no limit. */
	unsigned int looks;
	/*
	 * For dump_watch() and dump_merged(): the minimum time from the beginning of one look to the beginning of the next.
	 */
	double interval_s;
	bool no_stop;		     /* do not stop the target */
	struct mixed_options native; /* which native frames to print; if `no_stop` is set, `which` must be MIXED_NONE */
	bool source;		     /* add the lines of source around the current line of each frame (dump/source.h) */
	bool arguments; /* add the command line and the names of environment variables (session/process_arguments.h) */
	bool another;	/* another target was printed before, so text output begins with an empty line */
};

/*
 * Prints the stacks to standard output. If the output cannot be written, the function fails, but some of the stacks
 * might already have been printed. If the function fails for another reason, it has printed nothing to standard output.
 * On success, *status receives EXIT_COMPLETE or EXIT_PARTIAL.
 */
struct error *dump_main(const struct dump_options *options, enum exit_status *status);

/*
 * Looks at a live process repeatedly. After each look, prints the stacks, and what each thread has done since the previous
 * look. On a terminal, the stacks of each look replace those of the previous look. In JSON, each look is one object on one
 * line. Ends after `options->looks` looks, at ^C or SIGTERM, or if the process has ended or has called exec. If the process
 * has ended or has called exec, a message on standard error says so.
 *
 * Fails if the first look fails, if the output cannot be written, or if there is not enough memory. If a later look fails,
 * prints a message on standard error, and goes on with the next look. On success, *status receives EXIT_PARTIAL if the
 * result of a look was not complete, if a look has failed, or if there were fewer looks than `options->looks`; otherwise
 * EXIT_COMPLETE.
 */
struct error *dump_watch(const struct dump_options *options, enum exit_status *status);

/*
 * Looks at a live process `options->looks` times, merges the results of these looks (trace/merged.h), and prints the merged
 * result. If the looks end early, merges and prints the results of the looks so far. The looks end early at ^C or SIGTERM, if
 * the process has ended or has called exec, or if the stacks need too much memory. Fails for the same reasons as dump_watch(),
 * and sets *status in the same way.
 */
struct error *dump_merged(const struct dump_options *options, enum exit_status *status);

#endif
