/*
 * The ways of looking at a target: paused, as it runs, and as a core has it. What pages there are to copy is learned by
 * looking; then they are copied at once, and looked at. A part of the session.
 */
#ifndef RBDUMP_STRATEGY_H
#define RBDUMP_STRATEGY_H

#include "session/look.h"

/*
 * Looks at a live target that it pauses for that, at one that it does not, or at a core. `look` receives the last look:
 * the one that found all that was wanted, or the best that was to be had in the tries there are: one that the self-test
 * has nothing against, if there was any. Whatever the target says, it is stopped a few times, and each time for no more
 * than a tenth of a second after what was known to be wanted of it is copied. Fails if the target cannot be stopped or
 * copied, if there was no time to test what was read, or out of memory; look_clear() is the caller's in each case.
 */
struct error *look_paused(const struct session *session, struct look *look);
struct error *look_unpaused(const struct session *session, struct look *look);
struct error *look_at_core(const struct session *session, struct look *look);

#endif
