/*
 * Names of signals.
 */
#ifndef RBDUMP_SIGNAL_NAME_H
#define RBDUMP_SIGNAL_NAME_H

/* The name of a signal, such as "SIGSEGV"; NULL if the signal has no name (real-time signals, invalid numbers). */
const char *signal_name(int signal);

#endif
