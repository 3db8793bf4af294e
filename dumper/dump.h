/*
 * The verb `rbdump -p PID`: what every thread of a Ruby process is doing.
 */
#ifndef RBDUMP_DUMP_H
#define RBDUMP_DUMP_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"

struct dump_options {
	pid_t pid;
	bool json;
	bool no_stop;	     /* read without pausing the target */
	const char *offsets; /* layout file; NULL to look for one */
};

/*
 * Prints to standard output, or fails with nothing printed there. *status receives EXIT_COMPLETE or EXIT_PARTIAL.
 */
struct error *dump_main(const struct dump_options *options, enum exit_status *status);

#endif
