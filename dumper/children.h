/*
 * The verb `rbdump -p PID --children`: a process and all that descend from it, one after another, each as `rbdump -p`
 * shows it. For servers that fork their workers.
 */
#ifndef RBDUMP_CHILDREN_H
#define RBDUMP_CHILDREN_H

#include "dump.h"

/*
 * Prints the Rubies among them to standard output: as text, with an empty line between; as JSON, one object a line.
 * Each is looked at by a process of rbdump's own, so that one which takes too long, or ends it, keeps no other from
 * being shown.
 * Each is stopped on its own, while the others go on. Who is no Ruby, or ends meanwhile, is named on standard error and
 * passed over; so is who cannot be shown, with the reason, which can be that its own time is over.
 *
 * *status receives the highest exit status of those that were not passed over, as numbers go. Fails if there is no such
 * process, or no Ruby among them.
 */
struct error *children_main(const struct dump_options *options, enum exit_status *status);

#endif
