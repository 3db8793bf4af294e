/*
 * Where in a target's code its stack is in the middle of a change: the layout's windows, where they are in the process.
 * A part of the session.
 */
#ifndef RBDUMP_SESSION_WINDOWS_H
#define RBDUMP_SESSION_WINDOWS_H

#include "session/session.h"

/* Whether the torn windows of this very build are known. */
bool session_has_windows(const struct session *session);

/* The torn window that an instruction pointer of the target lies in; NULL if it is in none that is known. */
const struct layout_window *session_window(const struct session *session, uint64_t ip);

#endif
