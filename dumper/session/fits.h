/*
 * Which layouts fit a core that does not tell which Ruby it is of. A part of the session.
 */
#ifndef RBDUMP_FITS_H
#define RBDUMP_FITS_H

#include "session/session.h"

/*
 * Tries all layouts that say nothing of a build, newest first. Several may fit, those of neighbouring releases most
 * likely; then they must all show the same, and the session keeps the first.
 *   ret  receives the trace, without a header
 * Fails if none fits, and says then why the first could not be tried of those that could not; if several fit and do not
 * show the same, or more than are compared: then it names them; if out of memory.
 */
struct error *session_find_fitting(struct session *session, struct trace **ret);

#endif
