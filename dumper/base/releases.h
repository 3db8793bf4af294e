/*
 * Ranges of Ruby releases, in the form that layouts and recordings use: "3.1.2 3.1.4" is the range from 3.1.2 to 3.1.4,
 * and "3.1.2" is a single release.
 */
#ifndef RBDUMP_RELEASES_H
#define RBDUMP_RELEASES_H

/* The size of the buffer for releases_words(), in bytes, including the terminating NUL. */
#define RELEASES_WORDS 72

/*
 * Writes a range as words: "3.1.2 3.1.4" becomes "3.1.2 to 3.1.4"; "3.1.2" is unchanged. Truncates the words if they do
 * not fit into `ret`. Returns `ret`.
 */
const char *releases_words(const char *range, char ret[RELEASES_WORDS]);

#endif
