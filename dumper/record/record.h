/*
 * The verb `rbdump record`: samples the stacks of Ruby processes many times per second.
 *
 * record_main() starts the command if the user gave one, and finds the processes to follow. For each of these
 * processes, record_main() forks a capture (see capture.h). The captures send records, and record_main() writes these
 * records.
 */
#ifndef RBDUMP_RECORD_H
#define RBDUMP_RECORD_H

#include "record/options.h"

/*
 * Makes a recording. Returns the status with which rbdump must exit. If rbdump started a command, and no error occurred
 * in rbdump itself, this status is the exit status of the command.
 */
int record_main(const struct record_options *options);

#endif
