/*
 * Shows texts on a terminal, each in the place of the one before.
 */
#ifndef RBDUMP_SCREEN_H
#define RBDUMP_SCREEN_H

#include <stddef.h>

/*
 * Replaces what standard output shows by a text, without flicker. If the terminal has fewer lines than the text, shows the
 * first lines, and how many there are more. Cuts lines that are too long for the terminal.
 *   text  must contain no control sequences except SGR (colours), and end with a newline
 */
void screen_show(const char *text, size_t length);

/* Lets the terminal wrap lines again. The last text stays. */
void screen_end(void);

#endif
