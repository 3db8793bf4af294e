/*
 * The verb `rbdump experiment`: measures how reliable the sampled stacks of a process are, and what the sampling costs.
 */
#ifndef RBDUMP_EXPERIMENT_H
#define RBDUMP_EXPERIMENT_H

#include "experiment/options.h"

/*
 * Runs an experiment in a child process, and prints the report. If the calling process is killed, the child first
 * detaches from the target, and then ends (see guard/worker.h). Returns the exit status of rbdump.
 */
int experiment_main(const struct experiment_options *options);

#endif
