/*
 * Looks at a target. The target is a paused process, a running process or a core. The first look at a process shows
 * which pages are needed. If rbdump may pause the process, rbdump then stops the process and copies the pages that
 * contain changing data. The other pages are copied after the process goes on. rbdump then repeats the look on the
 * copied pages. If the repeated look has no reliable result, rbdump stops the process again, and copies all needed
 * pages before the process goes on. This header is used only inside session/.
 */
#ifndef RBDUMP_STRATEGY_H
#define RBDUMP_STRATEGY_H

#include "session/look.h"

/*
 * Looks at the target. The kind of target and the session's options determine the strategy. A strategy may need several
 * looks. For a core or a paused process, `look` receives the last of these looks. For a process that is not paused,
 * `look` receives one of the looks that have passed the self-test: the look with the fewest changed stacks and lists.
 * If no look has passed the self-test, `look` receives the last look.
 *
 * A target is stopped only a few times, even if the target's memory contains garbage. During each stop, rbdump first
 * copies the pages that are known to be needed. The stop ends at most a tenth of a second after this copy. Fails if the
 * target cannot be stopped or copied, if there was not enough time for the self-test, or if there is not enough memory.
 * The caller must call look_clear(), even after a failure.
 */
struct error *look_at_target(const struct session *session, struct look *look);

#endif
