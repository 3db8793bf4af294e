/*
 * Finds the torn windows of a target. A torn window is a range of code that changes a stack. The layout contains the
 * addresses of the windows in the ELF file, but session_window() takes an address in the process.
 */
#ifndef RBDUMP_SESSION_WINDOWS_H
#define RBDUMP_SESSION_WINDOWS_H

#include "session/session.h"

/* Whether the session's layout contains torn windows and was made for the target's exact build. */
bool session_has_windows(const struct session *session);

/*
 * Returns the innermost torn window that contains the target's instruction pointer `ip`. Returns NULL if no known
 * window contains `ip`.
 */
const struct layout_window *session_window(const struct session *session, uint64_t ip);

#endif
