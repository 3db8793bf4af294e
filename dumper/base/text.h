/*
 * A string that grows. The string is always valid UTF-8 without NUL bytes: a byte that would break this rule is written
 * as \xNN. Names in a target can contain arbitrary bytes, but all output of rbdump is valid UTF-8.
 */
#ifndef RBDUMP_TEXT_H
#define RBDUMP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct text {
	char *data; /* NUL-terminated; NULL if the text is empty */
	size_t length, capacity;
	bool failed; /* memory has run out, so the text is incomplete */
};

/* Frees the memory, and leaves the text empty. */
void text_clear(struct text *text);

/* Appends bytes. Each NUL byte, and each byte that is not part of well-formed UTF-8, is written as \xNN. */
void text_add(struct text *text, const void *bytes, size_t length);

/*
 * Checks whether the character at `bytes` must be escaped in output. A character must be escaped if it could control a
 * terminal or an editor, or could make one text look like another. The characters to escape are the control characters
 * (C0, DEL and C1), line and paragraph separators, characters that change the direction of text (bidi controls), and
 * characters for interlinear annotation. All code of rbdump that prints text uses this function to find these
 * characters.
 *   bytes, length  the text; only its first character is checked
 * If the character is well-formed and must be escaped, returns its length in bytes, and sets *ret to its code point.
 * Otherwise, returns 0.
 */
size_t text_control(const void *bytes, size_t length, uint32_t *ret);

/*
 * Writes a string to a terminal or a log. Each byte that is not part of well-formed UTF-8, and each byte of a control
 * character (see text_control()), is written as \xNN.
 */
void text_print(const char *bytes, FILE *stream);

/*
 * Writes a text as a JSON string, with quotes around it. Escapes control characters (see text_control()), and "<", ">"
 * and "&", so that the text cannot end an HTML script element that contains the JSON. A JSON parser that reads the
 * output gets exactly `text`.
 *   text  valid UTF-8
 */
void text_print_json(const char *text, FILE *stream);

/* Appends text, formatted as with printf(3). The formatted text must be valid UTF-8. */
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * If a text has more than `max` bytes after the offset `before`, keeps at most `max` of these bytes. Does not cut a
 * character into pieces. Puts "…" in the place of the removed bytes.
 */
void text_shorten(struct text *text, size_t before, size_t max);

/*
 * Returns the length in bytes of the UTF-8 character at `bytes`. Returns 0 if the character is NUL, is not well-formed,
 * or does not end within `length` bytes.
 */
size_t text_character(const uint8_t *bytes, size_t length);

#endif
