/*
 * Finds a layout for a target if rbdump does not know which layout is right. For example, a core might not contain the
 * version of its Ruby, or rbdump might have no layout for the release of the target's Ruby. This header is used only
 * inside session/.
 *
 * Several layouts can fit the same target. Most often, these are the layouts for neighbouring releases. If several
 * layouts fit, rbdump reads the same bytes through each layout that fits, and all results must be the same (rivals.h).
 * The session then keeps the first layout that fits.
 */
#ifndef RBDUMP_FITS_H
#define RBDUMP_FITS_H

#include "session/session.h"

/*
 * Tries layouts on a core whose Ruby version is not known: all layouts except those that are for only one build. Tries
 * the newest layouts first.
 *   ret  receives the trace. The trace's pid, version and layout are not set yet
 *
 * Fails if no layout fits. If some layouts could not be tried because of errors, the error message also contains the
 * first of these errors. Fails if several layouts fit but give different results, or if more layouts fit than rbdump can
 * compare. In both cases, the error names up to TRACE_FITS layouts that fit. Also fails if there is not enough memory.
 */
struct error *session_find_fitting(struct session *session, struct trace **ret);

/*
 * Tries the layouts for the releases that are nearest to the session's version (store/nearest.h). Tries the nearest
 * layout first. Sets the source of the session's layout to LAYOUT_NEAREST. All output of this session must say that the
 * layout is for other releases (session_nearest()).
 *   ret   receives the trace. The trace's pid, version and layout are not set yet
 *   none  receives NULL if a layout fits. If no layout fits, `*none` receives an error. The error says what is wrong
 *         with the nearest layout, or says that there is no layout for a nearby release
 *
 * If the layouts that fit give different results, fails, and the error names two of these layouts. If more layouts fit
 * than rbdump can compare, fails, and the error names the nearest layout that fits. Also fails if there is not enough
 * memory.
 */
struct error *session_find_nearest(struct session *session, const struct layout_wish *wish, struct trace **ret,
				   struct error **none);

#endif
