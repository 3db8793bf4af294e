/*
 * Which layouts fit a target that none is known to be for: a core that does not tell which Ruby it is of, or a Ruby of
 * a release that there is no layout for. A part of the session.
 *
 * Several may fit, those of neighbouring releases most likely. Then all of them are looked through in the same bytes,
 * and must show the same (rivals.h); the session keeps the first.
 */
#ifndef RBDUMP_FITS_H
#define RBDUMP_FITS_H

#include "session/session.h"

/*
 * Tries all layouts that say nothing of a build, newest first, on a core of no known version.
 *   ret  receives the trace, without a header
 * Fails if none fits, and says then why the first could not be tried of those that could not; if several fit and do not
 * show the same, or more than are compared: then it names them; if out of memory.
 */
struct error *session_find_fitting(struct session *session, struct trace **ret);

/*
 * Tries the layouts that are nearest to the session's version (layout/nearest.h), the nearest first. What is kept is of
 * LAYOUT_NEAREST: whoever shows anything read through it says so (session_nearest()).
 *   ret   receives the trace, without a header
 *   none  receives a malloc'ed sentence if none fits or there is none: what is against the nearest; else NULL
 * Fails, and names two, if those that fit do not show the same, or more fit than are compared; if out of memory.
 */
struct error *session_find_nearest(struct session *session, const struct layout_wish *wish, struct trace **ret,
				   char **none);

#endif
