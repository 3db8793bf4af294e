/*
 * Shows texts on a terminal. Each text replaces the previous text.
 */
#ifndef RBDUMP_SCREEN_H
#define RBDUMP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the terminal has room for all lines of a text. */
bool screen_fits(const char *text, size_t length);

/*
 * Shows a text on standard output, in place of the previous text, without flicker. The caller must not write anything to
 * standard output before the first text. After this call, the caller must flush standard output. If the text has too many
 * lines for the terminal, shows the first lines of the text, and how many lines are not shown. Cuts lines that are too long
 * for the terminal.
 *   text  must contain no control sequences except SGR (colours), and end with a newline
 */
void screen_show(const char *text, size_t length);

#endif
