/*
 * Whether the layout at hand fits a session's target: the target is looked at through it, and the self-test asked. A
 * part of the session.
 */
#ifndef RBDUMP_TRIAL_H
#define RBDUMP_TRIAL_H

#include "session/session.h"

/*
 * Looks through the layout in `session->layout`, for the version in `session->version`.
 *   ret      receives the trace, without a header; NULL if there is an error, or the layout was refused
 *   refused  receives a malloc'ed sentence if the self-test has something against the layout; else NULL
 * On success, `session->memory` and `session->ruby` are those of that look.
 */
struct error *session_try(struct session *session, struct trace **ret, char **refused);

#endif
