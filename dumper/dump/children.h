/*
 * Dumps a process and all its descendants, one after another. Each process is dumped as in dump.h. For example, the
 * process is a server, and its descendants are the workers that it forked.
 */
#ifndef RBDUMP_CHILDREN_H
#define RBDUMP_CHILDREN_H

#include "dump/dump.h"

/*
 * Prints the stacks of each Ruby among these processes to standard output. Text output has an empty line between two
 * Rubies. JSON output has one object per line. While rbdump stops one Ruby, the other Rubies go on. For each process,
 * rbdump forks a child of its own. If a process takes too long, only that child ends, and the other dumps are not
 * affected.
 *
 * A process is skipped if it is not a Ruby, or if it ends before rbdump has read its stacks. A message on standard
 * error names each skipped process. Another message names each process that cannot be shown, and gives the reason. One
 * possible reason is that the time limit for the process has passed.
 *
 * *status receives the numerically highest exit status of the processes that were not skipped. Fails if the process
 * `options->pid` does not exist, or if neither that process nor any of its descendants is a Ruby.
 */
struct error *children_main(const struct dump_options *options, enum exit_status *status);

#endif
