/*
 * What signals are called.
 */
#ifndef RBDUMP_SIGNAL_NAME_H
#define RBDUMP_SIGNAL_NAME_H

/* "SIGSEGV"; NULL if it is none that has a name of its own. */
const char *signal_name(int signal);

#endif
