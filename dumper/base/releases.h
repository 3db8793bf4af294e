/*
 * Ranges of Ruby releases, as layouts and recordings write them: "3.1.2 3.1.4" is the first and the last release of a
 * range, "3.1.2" is one release.
 */
#ifndef RBDUMP_RELEASES_H
#define RBDUMP_RELEASES_H

/* The size of the buffer for releases_words(), in bytes, with the final NUL. */
#define RELEASES_WORDS 72

/*
 * Writes a range as words: "3.1.2 3.1.4" becomes "3.1.2 to 3.1.4"; "3.1.2" is unchanged. Cuts off what does not fit
 * into `ret`. Returns `ret`.
 */
const char *releases_words(const char *range, char ret[RELEASES_WORDS]);

#endif
