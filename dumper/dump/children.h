/*
 * Dumps a process and all its descendants, one after another. dump_main() (dump/dump.h) dumps each process. For
 * example, the process is a server, and its descendants are the workers that it forked.
 */
#ifndef RBDUMP_CHILDREN_H
#define RBDUMP_CHILDREN_H

#include "dump/dump.h"

/*
 * Dumps the process `options->pid` and all its descendants: prints the stacks of each process that runs Ruby to
 * standard output. In text output, an empty line separates two processes. JSON output has one object per line. rbdump
 * stops only one process at a time. For each process, rbdump forks a separate child, which makes the dump. If a dump
 * takes too long, only its child ends, and the other dumps are not affected.
 *
 * A process is skipped if it does not run Ruby, or if it ends before rbdump has read its stacks. A message on standard
 * error names each skipped process. If a process runs Ruby but cannot be dumped, a message names the process and gives
 * the reason, for example that the time limit for the process has passed.
 *
 * *status receives the numerically highest exit status among the dumps of the processes that were not skipped. Fails if
 * the process `options->pid` does not exist, or if all processes were skipped.
 */
struct error *children_main(const struct dump_options *options, enum exit_status *status);

#endif
