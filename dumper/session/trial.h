/*
 * Tries one layout on a session's target: looks at the target through this layout, and runs the self-test. This header
 * is used only inside session/.
 */
#ifndef RBDUMP_TRIAL_H
#define RBDUMP_TRIAL_H

#include "session/session.h"

/*
 * Tries the layout in `session->layout`, for the version in `session->version`.
 *   ret      receives the trace. The trace's pid, version and layout are not set yet. After an error, or if the layout
 *            is refused, `ret` receives NULL
 *   refused  if the layout is refused, receives the reason; otherwise receives NULL
 *
 * On success, the trace describes the Ruby in `session->ruby`, and was read from `session->memory`.
 */
struct error *session_try(struct session *session, struct trace **ret, struct error **refused);

#endif
