/*
 * Which layout a session's target is read through: those that there are for its Ruby are tried, and one is made if none
 * fits. A part of the session.
 */
#ifndef RBDUMP_SESSION_LAYOUTS_H
#define RBDUMP_SESSION_LAYOUTS_H

#include "session/session.h"

/*
 * Finds a layout that passes the self-test, and keeps it if it was made. If all that is known of the version is a hint,
 * and leads to none, or if nothing is known, it is one that fits; if there is none for the release, and the nearest is
 * wanted, it is that (fits.h).
 *   ret  receives the trace that was seen through it, without a header; NULL on failure
 * Fails with what is against the first layout that was tried, or why there is none and what would help.
 */
struct error *session_find_layout(struct session *session, struct trace **ret);

#endif
