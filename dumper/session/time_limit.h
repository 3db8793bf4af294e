/*
 * How long it may take until there is something to show. Looking for debug info can take long: a server may be asked
 * for it, and a file of the target's own may be anything; a core may lie on a slow disk. Neither can be interrupted, so
 * rbdump ends then; the target goes on, which is stopped by nothing of that. A part of the session.
 */
#ifndef RBDUMP_TIME_LIMIT_H
#define RBDUMP_TIME_LIMIT_H

#include "target/target.h"

/* If none is asked for: two minutes. */
#define TIME_LIMIT_S 120

/* What takes its time. */
enum time_limit_of { TIME_LIMIT_LOOK, TIME_LIMIT_DEBUG_INFO };

/*
 * From now on the time runs; it does so for one target at once. When it is over, rbdump says of which target and what
 * took so long, and ends with EXIT_FAILED.
 *   seconds  0 for TIME_LIMIT_S
 */
void time_limit_begin(enum target_kind kind, pid_t pid, unsigned int seconds);

/* What is being done now, from the beginning on TIME_LIMIT_LOOK. Nothing if no time runs. */
void time_limit_is_of(enum time_limit_of of);

void time_limit_end(void);

#endif
