/*
 * Names of signals.
 */
#ifndef RBDUMP_SIGNAL_NAME_H
#define RBDUMP_SIGNAL_NAME_H

/*
 * Returns the name of a signal, such as "SIGSEGV", or NULL if the signal has no name. Real-time signals and invalid
 * numbers have no name.
 */
const char *signal_name(int signal);

#endif
