/*
 * Tries one layout on a session's target: looks at the target through this layout, and runs the self-test. This header
 * is used only inside session/.
 */
#ifndef RBDUMP_TRIAL_H
#define RBDUMP_TRIAL_H

#include "session/session.h"

/*
 * Tries the layout in `session->layout`, for the version in `session->version`.
 *   ret      receives the trace, in which the pid, the version and the layout are not set. NULL after an error, or if
 *            the layout is refused
 *   refused  receives the reason if the layout is refused; else NULL
 *
 * On success, `session->memory` and `session->ruby` are the memory and the Ruby that the trace was made from.
 */
struct error *session_try(struct session *session, struct trace **ret, struct error **refused);

#endif
