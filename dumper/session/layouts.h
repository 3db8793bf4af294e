/*
 * Finds the layout for a session's target. Tries the existing layouts that are for the target's Ruby. Makes a new
 * layout if none of these layouts fits, or if a new layout could have facts that these layouts lack (for example torn
 * windows). This header is used only inside session/.
 */
#ifndef RBDUMP_SESSION_LAYOUTS_H
#define RBDUMP_SESSION_LAYOUTS_H

#include "session/session.h"

/*
 * Finds a layout that passes the self-test. If this layout is new, keeps it in the cache. If the user gave a layout
 * (--offsets), tries only that layout.
 *
 * Tries all layouts if the version is not known (fits.h). Also tries all layouts if the version is only a hint and no
 * layout for that version fits. If there is no layout for the release, and --nearest was given, tries the nearest
 * layouts.
 *   ret  receives the trace that was read through the layout; its pid, version and layout are not set. NULL on failure
 *
 * On failure, the error says what is wrong with the first layout that was refused. If there was no layout to try, the
 * error says why, and what would help.
 */
struct error *session_find_layout(struct session *session, struct trace **ret);

#endif
