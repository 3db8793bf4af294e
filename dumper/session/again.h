/*
 * Looks at a process once more, in a session that is already open. The search for the layout is not repeated.
 */
#ifndef RBDUMP_AGAIN_H
#define RBDUMP_AGAIN_H

#include "session/session.h"

/*
 * Looks at the session's target again, through the session's layout, and runs the self-test.
 *   time_limit_s  the time limit for the look (time_limit.h); 0: the default
 *   trace         receives the trace of all stacks. The trace's pid, version and layout are not set yet. The caller destroys
 *                 the trace. On failure, `trace` receives NULL
 *
 * Fails if the target cannot be stopped or copied, or if the self-test refuses the layout. The self-test refuses the layout
 * if the process is ending, has called exec (live_is_gone()), or changes too fast while it is read. The session stays open
 * even after a failure. Ends rbdump if there is no result within the time limit.
 */
struct error *session_look_again(struct session *session, unsigned int time_limit_s, struct trace **trace);

#endif
