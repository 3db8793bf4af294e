/*
 * The options and arguments that say which process or core is read. The verbs dump, heap and object all have these
 * options and arguments.
 */
#ifndef RBDUMP_TARGET_ARGUMENTS_H
#define RBDUMP_TARGET_ARGUMENTS_H

#include <getopt.h>

#include "base/target_options.h"
#include "verbs/command_line.h"

/*
 * The values that getopt_long() returns for the long options that have no short form. The values for a verb's own
 * options start at OPTION_OWN.
 */
enum { OPTION_OFFSETS = 256, OPTION_NEAREST, OPTION_RUBY_VERSION, OPTION_FORCE, OPTION_TIME_LIMIT, OPTION_OWN };

/* The rows of these options in the table for getopt_long(). The string of short options must contain "p:c:". */
#define TARGET_ARGUMENTS                                                                                               \
	{"pid", required_argument, NULL, 'p'}, {"core", required_argument, NULL, 'c'},                                 \
	    {"offsets", required_argument, NULL, OPTION_OFFSETS}, {"nearest", no_argument, NULL, OPTION_NEAREST},      \
	    {"ruby-version", required_argument, NULL, OPTION_RUBY_VERSION},                                            \
	    {"force", no_argument, NULL, OPTION_FORCE},                                                                \
	{                                                                                                              \
		"time-limit", required_argument, NULL, OPTION_TIME_LIMIT                                               \
	}

/*
 * Handles an option, if it is one of the options above.
 *   wrong  receives the exit status if the value of the option is wrong; otherwise 0
 * Returns whether the option is one of the options above.
 */
bool target_arguments_take(const struct command_line *line, int option, struct target_options *ret, int *wrong);

/*
 * Takes the arguments that are not options, from `optind` on: PID, or EXE if the target is a core. Then checks that the
 * options and arguments fit together.
 *   next  receives the index of the first argument that was not taken
 * Returns 0, or the exit status if something is wrong.
 */
int target_arguments_finish(const struct command_line *line, int argc, char **argv, struct target_options *ret,
			    int *next);

#endif
