/*
 * Finds the layout for a session's target. Tries the existing layouts that are for the target's Ruby. Makes a new
 * layout if none of the existing layouts fits. Also makes a new layout if the new layout could contain facts that the
 * existing layouts lack, for example the ranges of code that change a stack (torn windows). This header is used only
 * inside session/.
 */
#ifndef RBDUMP_SESSION_LAYOUTS_H
#define RBDUMP_SESSION_LAYOUTS_H

#include "session/session.h"

/*
 * Finds a layout that passes the self-test. If rbdump has just made this layout, stores the layout in the cache. If the
 * user gave a layout (--offsets), tries only that layout.
 *
 * Tries all layouts if the version is not known (fits.h). Also tries all layouts if the version comes from a text on
 * the heap (`version_is_hint`), and no layout for that version fits. If there is no layout for the release, and the
 * user gave --nearest, tries the layouts of the nearest releases (fits.h).
 *   ret  receives the trace that was read through the layout. The trace's pid, version and layout are not set yet. On
 *        failure, `ret` receives NULL
 *
 * On failure, the error says what is wrong with the first layout that the self-test refused. If there was no layout to
 * try, the error says why there was no layout, and what the user can do.
 */
struct error *session_find_layout(struct session *session, struct trace **ret);

#endif
