/*
 * The signals that rbdump record handles. SIGINT (^C), SIGTERM and SIGQUIT end the recording. SIGHUP either begins a
 * new file or ends the recording (see signals_take()).
 */
#ifndef RBDUMP_SIGNALS_H
#define RBDUMP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* The number of received signals that end the recording. */
extern volatile sig_atomic_t signals_ends;

/* The number of received signals that begin a new file, counted since signals_rotations was last set to 0. */
extern volatile sig_atomic_t signals_rotations;

/*
 * Installs handlers for SIGINT, SIGTERM, SIGQUIT and SIGHUP. A signal that is already ignored (nohup) stays ignored.
 * Also ignores SIGPIPE and SIGXFSZ, so that a failed write returns an error and does not end rbdump.
 *   rotates  whether SIGHUP begins a new file; if false, SIGHUP ends the recording
 */
void signals_take(bool rotates);

/* Whether rbdump has a controlling terminal. The kernel sends SIGHUP when that terminal is closed. */
bool signals_have_terminal(void);

/*
 * Whether to give up a write that a signal has interrupted. Returns true if signals_ends is at least 2.
 */
bool signals_give_up(void);

#endif
