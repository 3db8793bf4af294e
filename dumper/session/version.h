/*
 * Finds out the version of a session's Ruby, and where the version comes from. This header is used only inside
 * session/.
 */
#ifndef RBDUMP_SESSION_VERSION_H
#define RBDUMP_SESSION_VERSION_H

#include "session/session.h"

/*
 * Sets the version and the description of a session whose module is open. The version and the description come from
 * Ruby's own constants. If a core lacks these constants, the version comes from another source. The possible sources
 * are a layout that has the build-id of the core's Ruby, other data of the core (core_version.h), and the user. The
 * user's version takes precedence over hints. Hints are the name of a libruby, and texts on the heap. If no source
 * contains the version, the version stays empty.
 *   given  the version that the user gave for a core, "X.Y.Z"; NULL if the user gave none
 *
 * Fails if the version of a process's Ruby cannot be read, or if the text at the version's address is not a version.
 * Also fails if the user's version for a core differs from the version in a reliable source. All sources except hints
 * are reliable.
 */
struct error *session_settle_version(struct session *session, const char *given);

#endif
