/*
 * Error sentences: what goes wrong with a file is told as one malloc'ed sentence, and NULL means that nothing did.
 * So that running out of memory while making one is not taken for success, the process ends then.
 */
#ifndef RBDUMP_SENTENCE_H
#define RBDUMP_SENTENCE_H

/*
 * Formats a sentence like asprintf(). To be freed by the caller; never NULL: aborts if there is no memory for it.
 * Bytes that are not printable ASCII (names may come from hostile files) are replaced by '?'.
 */
__attribute__((format(printf, 1, 2), returns_nonnull, malloc)) char *sentence(const char *format, ...);

#endif
