/*
 * Dumps a process and all its descendants, one after another. Each process is dumped by dump_main() (dump/dump.h).
 * Typically, the first process is a server, and its descendants are the workers that the server has forked.
 */
#ifndef RBDUMP_CHILDREN_H
#define RBDUMP_CHILDREN_H

#include "dump/dump.h"

/*
 * Dumps the process `options->pid` and all its descendants. For each process that runs Ruby, prints the stacks to
 * standard output. In text output, there is an empty line between processes. In JSON output, each process is one object
 * on one line. rbdump stops only one process at a time. Each dump is made in a separate child process of rbdump. If a
 * dump exceeds its time limit, only the child process for this dump ends. The other dumps are not affected.
 *
 * A process is skipped if it does not run Ruby, or if it ends before rbdump has read its stacks. For each skipped
 * process, a message is printed to standard error. If a process runs Ruby but cannot be dumped, a message names the
 * process and gives the reason, for example that the dump exceeded its time limit.
 *
 * *status receives the numerically highest exit status of all dumps; skipped processes do not count. Fails if the
 * process `options->pid` does not exist, or if all processes were skipped.
 */
struct error *children_main(const struct dump_options *options, enum exit_status *status);

#endif
