/*
 * Shows texts on a terminal, each in the place of the one before.
 */
#ifndef RBDUMP_SCREEN_H
#define RBDUMP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the terminal has room for all lines of a text. */
bool screen_fits(const char *text, size_t length);

/*
 * Shows a text on standard output in place of what it showed before, without flicker. Nothing may have been written to
 * standard output before the first text. The caller flushes standard output. If the terminal has fewer lines than the
 * text, shows the first lines, and how many more there are. Cuts lines that are too long for the terminal.
 *   text  must contain no control sequences except SGR (colours), and end with a newline
 */
void screen_show(const char *text, size_t length);

#endif
