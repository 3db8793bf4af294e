/*
 * Which version the Ruby of a session is, and who says so. A part of the session.
 */
#ifndef RBDUMP_SESSION_VERSION_H
#define RBDUMP_SESSION_VERSION_H

#include "session/session.h"

/*
 * Sets the version of a session whose module is open, and what its description is: by Ruby's own constants, else, of a
 * core that is without them, by a layout of that very build, by what else the core has (core_version.h), and by what
 * the user says, which counts for more than hints. If none of them says anything, there is no version.
 *   given  "X.Y.Z", what the user says of a core; NULL
 * Fails if a process's version cannot be read; if what is there is none; if the user says another one than a core does.
 */
struct error *session_settle_version(struct session *session, const char *given);

#endif
