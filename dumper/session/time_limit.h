/*
 * Limits the time that rbdump may take until it has a result. There are several reasons why rbdump can take a long
 * time. rbdump may ask a server for debug info. The search for debug info also reads files of the target, and a hostile
 * target can make such a read last forever. A core can be on a slow disk. A read of a process's memory might never
 * return. rbdump cannot interrupt a wait for a server, a disk or the kernel, so rbdump exits when the time limit
 * expires. If the target is stopped when rbdump exits, the kernel lets the target go on. This header is used only
 * inside session/.
 */
#ifndef RBDUMP_TIME_LIMIT_H
#define RBDUMP_TIME_LIMIT_H

#include <sys/types.h>

#include "base/error.h"

/* The default time limit: two minutes. */
#define TIME_LIMIT_S 120

/* The kinds of work that can exceed the time limit. If the time limit expires, the message names the kind of work. */
enum time_limit_of { TIME_LIMIT_LOOK, TIME_LIMIT_DEBUG_INFO, TIME_LIMIT_ARGUMENTS };

/*
 * Starts the clock that measures the time limit. The caller must not start a second clock while this clock is running.
 * When the time limit expires, rbdump prints the target's pid and the kind of work that took too long, and exits with
 * EXIT_FAILED.
 *   name     the words before the pid in messages (`name` of struct target_operations)
 *   seconds  the time limit; 0 means TIME_LIMIT_S
 *
 * Fails if no thread can be started.
 */
struct error *time_limit_begin(const char *name, pid_t pid, unsigned int seconds);

/*
 * Tells the clock which kind of work rbdump is doing now. Before the first call, the kind is TIME_LIMIT_LOOK. Has no
 * effect if the clock is not running.
 */
void time_limit_is_of(enum time_limit_of of);

/* Stops the clock. Does nothing if the clock is not running. */
void time_limit_end(void);

#endif
