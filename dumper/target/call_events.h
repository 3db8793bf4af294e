/*
 * Names of the events and signals that a system call or an epoll set waits for.
 */
#ifndef RBDUMP_CALL_EVENTS_H
#define RBDUMP_CALL_EVENTS_H

#include <stdint.h>

#include "base/text.h"

/*
 * Returns the names of the events in a set, such as "read" or "read, write". The flags of poll(2) and epoll(7) have the
 * same values. Errors and hang-ups are not named, because the kernel always reports them. If the set contains no events
 * except errors and hang-ups, returns "errors".
 */
const char *call_events(uint32_t events);

/*
 * Appends the names of signals, with ", " between them: "SIGINT, SIGTERM". If a signal has no name, appends its number.
 *   set  bit 0 is signal 1, as in the kernel's sigset_t
 */
void call_add_signals(struct text *text, uint64_t set);

#endif
