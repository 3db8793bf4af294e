/*
 * Finds a layout for a target if it is not known which layout is right. This happens with a core that does not contain
 * the version of its Ruby, and with a Ruby whose release has no layout. This header is used only inside session/.
 *
 * Several layouts can fit, most likely the layouts of neighbouring releases. In this case, the same bytes are read
 * through each layout that fits, and all results must be the same (rivals.h). The session then keeps the first layout
 * that fits.
 */
#ifndef RBDUMP_FITS_H
#define RBDUMP_FITS_H

#include "session/session.h"

/*
 * Tries all layouts on a core whose Ruby version is not known, the newest layouts first. Skips layouts that are for one
 * build only.
 *   ret  receives the trace; its pid, version and layout are not set
 *
 * Fails if no layout fits. If some layouts could not be tried, the error also says why the first of these layouts could
 * not be tried. Fails if several layouts fit but give different results, or if more layouts fit than can be compared.
 * In both cases, the error names up to TRACE_FITS layouts that fit. Also fails if out of memory.
 */
struct error *session_find_fitting(struct session *session, struct trace **ret);

/*
 * Tries the layouts that are nearest to the session's version (store/nearest.h), the nearest first. The source of the
 * session's layout is then LAYOUT_NEAREST. All output of this session must say that the layout is for other releases
 * (session_nearest()).
 *   ret   receives the trace; its pid, version and layout are not set
 *   none  receives NULL if a layout fits. If no layout fits, `*none` receives an error. This error says what is wrong
 *         with the nearest layout, or that there is no layout for a nearby release
 *
 * If the layouts that fit give different results, fails and names two of these layouts. If more layouts fit than can be
 * compared, fails and names the nearest layout that fits. Also fails if out of memory.
 */
struct error *session_find_nearest(struct session *session, const struct layout_wish *wish, struct trace **ret,
				   struct error **none);

#endif
