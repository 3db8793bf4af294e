/*
 * Text that grows, always valid UTF-8 without NUL: bytes that are not come out as \xNN. What a target calls its methods
 * is any bytes at all; what leaves rbdump is text.
 */
#ifndef RBDUMP_TEXT_H
#define RBDUMP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "decode/value.h"

struct text {
	char *data; /* NUL-terminated, or NULL while empty */
	size_t length, capacity;
	bool failed; /* out of memory; what is there is not all */
};

/* Gives back the memory; the text is then empty. */
void text_clear(struct text *text);

/* Appends bytes, each that is not part of well-formed UTF-8, and NUL, as \xNN. */
void text_add(struct text *text, const void *bytes, size_t length);

/*
 * Whether a terminal, an editor or a reader's eye acts on the character at `bytes` instead of showing it: the control
 * characters of C0, DEL and C1; what ends a line; what turns the direction of the text beside it, so that it reads as
 * another text; interlinear annotation. The one place that decides it, for all that leaves rbdump.
 *   bytes  well-formed UTF-8, of which `length` are there
 * Returns its length, and its code point in *ret; 0 if it is shown as it is.
 */
size_t text_control(const void *bytes, size_t length, uint32_t *ret);

/* Writes bytes to a terminal or a log: what is not UTF-8, and every control character (text_control()), as \xNN. */
void text_print(const char *bytes, FILE *stream);

/*
 * Writes a string of JSON with its quotes: control characters (text_control()) are escaped, and so are "<", ">" and
 * "&", so that no text ends a script that the JSON is put in. What is read back is the same text.
 *   text  valid UTF-8
 */
void text_print_json(const char *text, FILE *stream);

/* Appends printf-like text, which must be UTF-8 already. */
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends bytes of the target; false, with the read failed, if they cannot be had. */
bool text_add_target(struct text *text, struct access *access, struct bytes bytes);

/* Length of the well-formed UTF-8 character at `bytes`, of which `length` are there; 0 if it is none. */
size_t text_character(const uint8_t *bytes, size_t length);

#endif
