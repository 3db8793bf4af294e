/*
 * Prints the stack of every thread in a live process or in a core file.
 */
#ifndef RBDUMP_DUMP_H
#define RBDUMP_DUMP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct dump_options {
	pid_t pid;		  /* the live process to dump; not used if `core` is set */
	const char *core;	  /* core file; NULL: dump the process `pid` */
	const char *executable;	  /* for a core: the path of the program that ran; NULL: use the path from the core */
	const char *ruby_version; /* for a core: Ruby's version, as the user gave it; NULL: not given */
	bool force;		  /* for a core: use `executable` even if it matches no mapped file */
	bool json;
	bool no_stop;		   /* do not stop the target */
	const char *offsets;	   /* layout file; NULL: search for a layout */
	bool nearest;		   /* if the target's release has no layout, use the nearest layout that fits */
	unsigned int time_limit_s; /* time limit for all work before the stacks are printed; 0: the default */
	bool another;		   /* another target was printed before, so text output begins with an empty line */
};

/*
 * Prints the stacks to standard output. If the output cannot be written, the function fails, but some of the stacks
 * might already have been printed. If the function fails for another reason, it has printed nothing to standard output.
 * On success, *status receives EXIT_COMPLETE or EXIT_PARTIAL.
 */
struct error *dump_main(const struct dump_options *options, enum exit_status *status);

#endif
