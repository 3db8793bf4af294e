/*
 * The verbs `rbdump -p PID` and `rbdump --core FILE`: what every thread of a Ruby process is doing, or was when it
 * died.
 */
#ifndef RBDUMP_DUMP_H
#define RBDUMP_DUMP_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"

struct dump_options {
	pid_t pid;		  /* if there is no core */
	const char *core;	  /* core file; NULL for a process */
	const char *executable;	  /* of a core: a file that ran; NULL to look where it was */
	const char *ruby_version; /* of a core that does not tell; NULL */
	bool force;		  /* of a core: take the executable whatever its build-id */
	bool json;
	bool no_stop;		   /* read without pausing the target */
	const char *offsets;	   /* layout file; NULL to look for one */
	bool nearest;		   /* if there is none for this release, take the nearest that fits */
	unsigned int time_limit_s; /* until there is something to show; 0: as usual */
	bool another;		   /* as text: an empty line first, since another was printed before */
};

/*
 * Prints to standard output, or fails with nothing printed there. *status receives EXIT_COMPLETE or EXIT_PARTIAL.
 */
struct error *dump_main(const struct dump_options *options, enum exit_status *status);

#endif
