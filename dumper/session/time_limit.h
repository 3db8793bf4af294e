/*
 * How long it may take until there is something to show. Looking for debug info can take long: a server may be asked
 * for it, and a file of the target's own may be anything; a core may lie on a slow disk; a page of a process may be one
 * that nobody provides. None of that can be interrupted, so rbdump ends then; the kernel lets a target go on that is
 * stopped at that moment. A part of the session.
 */
#ifndef RBDUMP_TIME_LIMIT_H
#define RBDUMP_TIME_LIMIT_H

#include "error.h"
#include "target/target.h"

/* If none is asked for: two minutes. */
#define TIME_LIMIT_S 120

/* What takes its time. */
enum time_limit_of { TIME_LIMIT_LOOK, TIME_LIMIT_DEBUG_INFO };

/*
 * From now on the time runs; it does so for one target at once. When it is over, rbdump says of which target and what
 * took so long, and ends with EXIT_FAILED.
 *   seconds  0 for TIME_LIMIT_S
 * Fails if no thread can be started.
 */
struct error *time_limit_begin(enum target_kind kind, pid_t pid, unsigned int seconds);

/* What is being done now, from the beginning on TIME_LIMIT_LOOK. Nothing if no time runs. */
void time_limit_is_of(enum time_limit_of of);

/* Nothing if no time runs. */
void time_limit_end(void);

#endif
