/*
 * `rbdump object`: prints one object of a heap: its class, its references, and which objects refer to it.
 */
#ifndef RBDUMP_OBJECT_H
#define RBDUMP_OBJECT_H

#include "heap/options.h"
#include "session/session.h"

/*
 * Prints the object at an address to standard output.
 *   rows  the maximum number of references that are printed in each of three lists: from the object, to the object, and
 *         from roots; 0: all
 *   json  print JSON instead of text
 * On success, *status receives EXIT_COMPLETE, or EXIT_PARTIAL if part of the heap could not be read. Fails, among other
 * reasons, if there is no object at that address.
 */
struct error *object_main(const struct target_options *target, uint64_t address, size_t rows, bool json,
			  enum exit_status *status);

/*
 * Does the same as object_main(), but for a session that heap_open() has opened.
 *   target  the process or the core that heap_open() has opened
 */
struct error *object_print(const struct target_options *target, struct session *session, uint64_t address, size_t rows,
			   bool json, enum exit_status *status);

#endif
